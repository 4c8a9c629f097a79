package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// shapeOf returns a tag of what matters for reading the stored bytes of a V: the codec, and the kinds and field names
// that V is made of. A renamed field makes another tag: msgpack would leave it zero without an error.
func shapeOf[V any](codec Codec[V]) string {
	h := sha256.New()
	name, _, _ := strings.Cut(fmt.Sprintf("%T ", codec), "[") // without V, whose name is not stored
	_, _ = io.WriteString(h, name)
	describe(h, reflect.TypeFor[V](), map[reflect.Type]bool{})
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func describe(w io.Writer, t reflect.Type, above map[reflect.Type]bool) {
	_, _ = fmt.Fprintf(w, "%s(", t.Kind())
	if above[t] || custom(t) {
		_, _ = fmt.Fprintf(w, "%s)", t)
		return
	}
	above[t] = true
	defer delete(above, t)
	switch t.Kind() {
	case reflect.Struct:
		for f := range fields(t) {
			_, _ = fmt.Fprintf(w, "%q %q ", f.Name, f.Tag.Get("msgpack"))
			describe(w, f.Type, above)
		}
	case reflect.Map:
		describe(w, t.Key(), above)
		describe(w, t.Elem(), above)
	case reflect.Array:
		_, _ = fmt.Fprintf(w, "%d ", t.Len())
		describe(w, t.Elem(), above)
	case reflect.Pointer, reflect.Slice, reflect.Chan:
		describe(w, t.Elem(), above)
	case reflect.Interface, reflect.Func:
		_, _ = io.WriteString(w, t.String())
	}
	_, _ = io.WriteString(w, ")")
}

// fields yields the fields that are stored.
func fields(t reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if f := t.Field(i); (f.IsExported() || f.Anonymous) && !yield(f) {
				return
			}
		}
	}
}

// custom says whether t decides by itself how it is stored.
func custom(t reflect.Type) bool {
	for _, method := range []string{"EncodeMsgpack", "MarshalMsgpack", "MarshalBinary", "MarshalText"} {
		if _, ok := reflect.PointerTo(t).MethodByName(method); ok {
			return true
		}
	}
	return false
}

// immutable says whether a V can't be changed through a copy of it.
func immutable[V any]() bool { return fixed(reflect.TypeFor[V]()) }

// declared says whether V has a method Immutable, which says that its values are never changed.
func declared[V any]() bool {
	return reflect.TypeFor[V]().Implements(reflect.TypeFor[interface{ Immutable() }]())
}

func fixed(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return fixed(t.Elem())
	case reflect.Struct:
		if t.String() == "time.Time" {
			return true // its pointer is to a location, which nobody changes
		}
		for i := range t.NumField() {
			if !fixed(t.Field(i).Type) {
				return false
			}
		}
		return true
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Chan, reflect.Func, reflect.Interface, reflect.UnsafePointer:
		return false
	}
	return true
}
