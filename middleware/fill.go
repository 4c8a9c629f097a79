package middleware

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/stale"
)

// fill has the handler make the response for one key, should the cache want it. Package cache decides on whose
// behalf the handler runs, and may have it run a second time; fill sees to it that one recording at most writes to the
// client, and none once the exchange goes on without it.
type fill struct {
	*exchange
	key      string
	sign     Response     // that led to the key
	route    *chi.Context // of the request
	insisted bool         // the client will not have what is stored

	mu     sync.Mutex
	runs   int
	writer *recording // the one that writes to the client
	left   bool       // none may begin to any more
	result *recording // the one that ended as package cache was told
}

func (x *exchange) fill(key string, sign Response) *fill {
	f := &fill{exchange: x, key: key, sign: sign}
	if route := chi.RouteContext(x.r.Context()); route != nil {
		f.route = route.Clone() // now: chi takes it back when the exchange is over, and a response may then still be made
	}
	return f
}

// compute is what package cache calls.
func (f *fill) compute(ctx context.Context) (Response, error) {
	f.mu.Lock()
	f.runs++
	f.mu.Unlock()
	former, ok := cache.Former[Response](ctx)
	if !ok || former.Value.isSignpost() {
		former = cache.Result[Response]{}
	}
	if r, ok := f.borrow(ctx); ok {
		return r, nil
	}
	rec := f.record(ctx, former)
	if rec.confirmed && !rec.freshen() { // the 304 was about something else
		former.Value.Header = nil
		rec = f.record(ctx, former)
	}
	return f.conclude(ctx, rec)
}

// borrow takes the response from those who said who they are, if it is for all. (Not the other way round: with
// one direction, and what is personal deleted first, nothing can come back after a purge.)
func (f *fill) borrow(ctx context.Context) (Response, bool) {
	if f.personal || f.sign.isSignpost() {
		return Response{}, false
	}
	got, err := f.cache.Get(ctx, personalKey(f.key))
	if err != nil || got.Outcome != cache.Hit || got.Value.isSignpost() || f.o.Obey && !f.content(got) {
		return Response{}, false
	}
	r := got.Value
	r.Age, r.Fresh = r.Age+got.Age, r.Fresh-got.Age
	return r, r.Fresh > 0 && cache.Lasting(ctx, f.judgeStored(r)) == nil
}

func (f *fill) judgeStored(r Response) stale.Policy {
	p := stale.Policy{Fresh: r.Fresh, WhileRevalidate: r.WhileRevalidate}
	if j := f.judge(f.r, r.Status, r.Header); !mustRevalidate(j.says) {
		p.IfError, p.Keep = j.policy.IfError, j.policy.Keep
	}
	return p
}

// record runs the handler.
func (f *fill) record(ctx context.Context, former cache.Result[Response]) *recording {
	rec := newRecording(ctx, f, former)
	ctx, rec.stop = context.WithCancelCause(ctx)
	rec.run(f.next, f.request(ctx, rec))
	return rec
}

// request is what the handler gets: the request that was made, with a context of its own, and for the whole response.
func (f *fill) request(ctx context.Context, rec *recording) *http.Request {
	if f.route != nil {
		ctx = context.WithValue(ctx, chi.RouteCtxKey, f.route.Clone())
	}
	r := f.r.Clone(ctx)
	r.Method, r.Body = http.MethodGet, http.NoBody
	r.Header = withoutConditions(f.r.Header)
	if ask, ok := conditions(rec.former.Value.Header); ok {
		rec.asking = true
		setFields(r.Header, ask)
	}
	return r
}

var (
	errNobody = errors.New("middleware: nobody is there to get the response")
	errOver   = errors.New("middleware: the handler has returned before")
)

// conclude makes the third decision: whether the response is complete, and may be published.
func (f *fill) conclude(ctx context.Context, rec *recording) (Response, error) {
	switch {
	case rec.mode != recorded: // package cache knows, unless its time was up before
		return Response{}, context.Cause(ctx)
	case rec.panicked != nil:
		f.ended(rec)
		return Response{}, rec.panicked
	case ctx.Err() != nil: // perhaps the handler returned because of it
		return Response{}, context.Cause(ctx)
	case rec.broken, rec.judged.failing:
		rec.failed = f.failure(rec)
		f.ended(rec)
		return Response{}, rec.failed
	case !rec.judged.ok: // as its 304 says
		f.ended(rec)
		if !cache.Pass(ctx, f.aside(rec.response.Status)) { // the time is up
			return Response{}, context.Cause(ctx)
		}
		return Response{}, nil
	}
	r, err := f.publish(ctx, rec)
	f.ended(rec)
	return r, err
}

// aside has the key pass the cache by, and returns for how long. Not because of an error: clients can provoke one, and would switch
// off what protects the handler for all others.
func (f *fill) aside(status int) time.Duration {
	if status >= 400 {
		return 0
	}
	f.passes.add(f.key)
	return passFor
}

func (f *fill) failure(rec *recording) *failure {
	shared := endToEnd(rec.response.Header, rec.judged.says, f.o.Drop...)
	return &failure{response: rec.response, shared: shared, asked: f.r.Header, judgement: rec.judged, broken: rec.broken}
}

// publish returns what is to be kept under the key, and puts the response elsewhere if that is where it belongs.
func (f *fill) publish(ctx context.Context, rec *recording) (Response, error) {
	r, policy := f.stored(rec), rec.judged.policy
	fields, _ := varies(r.Header)
	rec.stored = true
	switch {
	case f.sign.covers(fields):
		return r, cache.Lasting(ctx, policy)
	case !f.sign.isSignpost():
		sign := signpost(fields)
		_, err := f.cache.Lookup(ctx, variantKey(f.exchange.key, sign, f.r.Header), func(ctx context.Context) (Response, error) {
			return r, cache.Lasting(ctx, policy)
		})
		return sign, errors.Join(err, cache.Lasting(ctx, signpostPolicy(policy)))
	}
	// It depends on more than the signpost says. The response is not stored: under the URI's key it would be as of now, though
	// the handler began before.
	rec.stored = false
	cache.NoStore(ctx)
	got, err := f.cache.Refresh(ctx, f.exchange.key, func(ctx context.Context) (Response, error) {
		return signpost(union(f.sign.Vary, fields)), cache.Lasting(ctx, signpostPolicy(policy))
	})
	return got.Value, err
}

// stored is the response as it is kept.
func (f *fill) stored(rec *recording) Response {
	r, j := rec.response, rec.judged
	r.Header = endToEnd(r.Header, j.says, append(f.o.Drop, "Age")...)
	if bodied(r.Status) {
		r.Header.Set("Content-Length", strconv.Itoa(len(r.Body))) // it may have gone out before that was known
	}
	r.Age, r.Fresh, r.WhileRevalidate = j.age, j.policy.Fresh, j.policy.WhileRevalidate
	return r
}

func (f *fill) begun() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs > 0
}

// ended takes in the recording whose result package cache gets.
func (f *fill) ended(rec *recording) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.result = rec
}

// own is the recording that became the cache's answer, nil if another made it.
func (f *fill) own() *recording {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.result
}

// take says whether the recording may write to the client from now on.
func (f *fill) take(rec *recording) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writer == nil && !f.left && !rec.behind {
		f.writer = rec
	}
	return f.writer == rec && !f.left
}

// leave keeps recordings from beginning to write to the client, and returns the one that has begun.
func (f *fill) leave(err error) *recording {
	f.mu.Lock()
	f.left = true
	rec := f.writer
	f.mu.Unlock()
	if rec != nil && (f.r.Context().Err() != nil || errors.Is(err, recompute.ErrLimit) || errors.Is(err, cache.ErrClosed)) {
		rec.quit()
	}
	return rec
}

// early passes on an informational response.
func (f *fill) early(rec *recording, status int, h http.Header) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left || rec.behind || f.writer != nil {
		return
	}
	outer := f.w.Header().Clone()
	put(f.w.Header(), h)
	f.w.WriteHeader(status)
	clear(f.w.Header())
	setFields(f.w.Header(), outer)
}
