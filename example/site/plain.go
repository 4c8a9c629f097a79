package site

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/redis/go-redis/v9"
)

const plainTTL = time.Minute

// plain is what is usually written by hand: ask Redis, render what is missing, store it. Nothing keeps two readers from the same
// work, nor an old page from being stored after a delete.
type plain struct {
	rdb    redis.UniversalClient
	prefix string
	origin *Origin
}

func (p plain) get(w http.ResponseWriter, r *http.Request) {
	path := chi.URLParam(r, "*")
	page, err := p.held(r.Context(), path)
	switch missing := errors.Is(err, redis.Nil); {
	case err == nil:
		w.Header().Set("Cache-Status", "plain;hit")
		page.write(w)
	case missing && strings.EqualFold(r.Header.Get("Cache-Control"), "only-if-cached"): // RFC 9111 §5.2.1.7
		http.Error(w, http.StatusText(http.StatusGatewayTimeout), http.StatusGatewayTimeout)
	case missing:
		p.render(w, r, path)
	default:
		refuse(w, err)
	}
}

func (p plain) render(w http.ResponseWriter, r *http.Request, path string) {
	page, err := p.origin.Render(r.Context(), path)
	if err == nil {
		value := page.Rendering + "\n" + string(page.HTML)
		err = p.rdb.Set(r.Context(), p.prefix+path, value, plainTTL).Err()
	}
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Cache-Status", "plain;fwd=uri-miss;stored")
	page.write(w)
}

func (p plain) held(ctx context.Context, path string) (Page, error) {
	value, err := p.rdb.Get(ctx, p.prefix+path).Bytes()
	rendering, html, _ := bytes.Cut(value, []byte("\n"))
	return Page{HTML: html, Rendering: string(rendering)}, err
}

func (p plain) remove(w http.ResponseWriter, r *http.Request) {
	if err := p.rdb.Del(r.Context(), p.prefix+chi.URLParam(r, "*")).Err(); err != nil {
		refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
