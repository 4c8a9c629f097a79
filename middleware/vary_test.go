package middleware_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/bellwether-cache/bellwether/middleware"
)

func TestVaryIsAListOfFields(t *testing.T) {
	for _, c := range []struct {
		lines []string
		want  []string
	}{
		{nil, nil},
		{[]string{""}, nil},
		{[]string{" , ,"}, nil},
		{[]string{"Foo, bar"}, []string{"Bar", "Foo"}},
		{[]string{"foo", "FOO,Bar", "", "foo"}, []string{"Bar", "Foo"}},
		{[]string{"\tfoo\t"}, []string{"Foo"}},
	} {
		got, all := middleware.Varies(http.Header{"Vary": c.lines})
		assert.Equal(t, c.want, got, "%q", c.lines)
		assert.False(t, all, "%q", c.lines)
	}
}

func TestVaryStarIsFoundWhereverItStands(t *testing.T) {
	for _, lines := range [][]string{
		{"*"}, {"*, *"}, {"*", "*"}, {", *"}, {"", "*"}, {"*, Foo"}, {"Foo, *"}, {"Foo", "Bar,*"}, {" * "}, {",,*,,"},
		{"foo bar"}, {`"*"`}, {`"foo, bar`}, {"foo;q=1"}, {"foo=*"}, // what is no list of fields
	} {
		fields, all := middleware.Varies(http.Header{"Vary": lines})
		assert.True(t, all, "%q", lines)
		assert.Nil(t, fields, "%q", lines)
	}
}

func TestRequestsThatMeanTheSameAreOneVariant(t *testing.T) {
	for _, c := range []struct{ field, a, b string }{
		{"Foo", "1, 2", "1,2"}, {"Foo", "1, 2", " 1 ,\t2 "}, {"Foo", "1, 2", "1|2"}, {"Foo", "", " "},
		{"Accept-Encoding", "gzip, br", "br,gzip"}, {"Accept-Encoding", "gzip, br", "GZIP|br;q=0.5"}, {"Accept-Encoding", "gzip", "gzip, identity"},
		{"Accept-Encoding", "gzip", "gzip, br;q=0"}, {"Accept-Encoding", "gzip", "gzip;q=1.000, gzip"}, {"Accept-Encoding", "", "identity"},
		{"Accept-Encoding", "", "gzip;q=0"}, {"Accept-Encoding", "identity;q=0, gzip", "*;q=0, gzip"}, {"Accept-Encoding", "gzip, , br", "gzip,br"},
		{"Accept-Encoding", "identity, *;q=0", "identity"}, {"Accept-Encoding", "*", "*, identity"},
		{"Accept-Language", "en, de", "eN, De"}, {"Accept-Language", "en, de", " en ,   de"}, {"Accept-Language", "de; q=0.5", "de;q=0.5"},
	} {
		assert.Equal(t, variant(c.field, c.a), variant(c.field, c.b), "%s: %q and %q", c.field, c.a, c.b)
	}
}

func TestRequestsThatMeanAnotherThingAreOthers(t *testing.T) {
	for _, c := range []struct{ field, a, b string }{
		{"Foo", "1", "2"}, {"Foo", "1, 2", "2, 1"}, {"Foo", "1", "1,"}, {"Foo", "a b", "ab"}, {"Foo", "a", "A"}, {"Foo", `"a, b"`, `"a,b"`}, {"Foo", "", ","},
		{"Accept-Encoding", "gzip", "br"}, {"Accept-Encoding", "gzip", "gzip, br"}, {"Accept-Encoding", "gzip", "gzip, *"}, {"Accept-Encoding", "", "gzip"},
		{"Accept-Encoding", "gzip", "gzip, identity;q=0"}, {"Accept-Encoding", "*", "*, gzip;q=0"}, {"Accept-Encoding", "gzip", "gzip, *;q=0"},
		{"Accept-Encoding", "", "*;q=0"}, {"Accept-Encoding", "gzip", "x-gzip"}, {"Accept-Encoding", "gzip", "gzip;q=x"}, {"Accept-Encoding", "gzip", "gzip;q=0, gzip"}, {"Accept-Encoding", "", "gzip, gzip;q=0"},
		{"Accept-Encoding", "gzip;level=1", "gzip"}, {"Accept-Encoding", "gzip;q=0;x", "gzip;q=0"}, {"Accept-Encoding", "gzip;q=1.5", "gzip"},
		{"Accept-Language", "en, de", "de, en"}, {"Accept-Language", "en", "en;q=0.5"}, // the first may be the one preferred
	} {
		assert.NotEqual(t, variant(c.field, c.a), variant(c.field, c.b), "%s: %q and %q", c.field, c.a, c.b)
	}
	for _, field := range []string{"Foo", "Accept-Encoding", "Accept-Language"} {
		assert.NotEqual(t, middleware.Variant([]string{field}, http.Header{}), variant(field, ""), "absent is not empty: %s", field)
	}
}

// variant is of a request that has one field, its lines separated by bars.
func variant(field, lines string) string {
	return middleware.Variant([]string{field}, http.Header{field: strings.Split(lines, "|")})
}

func TestOnlyTheFieldsOfVaryCount(t *testing.T) {
	fields := []string{"Bar", "Foo"}
	a := middleware.Variant(fields, header("Foo: 1", "Other: 2"))
	assert.Equal(t, a, middleware.Variant(fields, header("Other: 3", "Foo: 1")))
	assert.NotEqual(t, a, middleware.Variant(fields, header("Bar: 1")))
	assert.NotEqual(t, a, middleware.Variant([]string{"Baz", "Foo"}, header("Foo: 1")))
	assert.Empty(t, middleware.Variant(nil, header("Foo: 1")))
}

// Fields whose meaning isn't known: what differs in more than whitespace around commas, or in lines, is another variant.
func TestVariantsOfUnknownFieldsAreKeptApart(t *testing.T) {
	value := rapid.StringOfN(rapid.SampledFrom([]rune(`ab,:-"\`)), 0, 8, -1)
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) http.Header {
			h := http.Header{}
			for _, field := range []string{"A", "B", "C"} {
				if rapid.Bool().Draw(t, name+" has "+field) {
					h[field] = []string{value.Draw(t, name+" "+field)}
				}
			}
			return h
		}
		a, b := draw("a"), draw("b")
		same := true
		for _, field := range []string{"A", "B", "C"} {
			same = same && slices.Equal(a[field], b[field])
		}
		fields := []string{"A", "B", "C"}
		if got := middleware.Variant(fields, a) == middleware.Variant(fields, b); got != same {
			t.Fatalf("%v and %v: %v", a, b, got)
		}
	})
}

// FuzzVary: whatever a Vary and a request say, the variant is one and the same each time, does not depend on the order or the
// repetition of the names, and changes with a field that comes or goes.
func FuzzVary(f *testing.F) {
	f.Add("Foo, Bar", "1", "2")
	f.Add("accept-encoding", "gzip;q=0, *", "")
	f.Add("*, a", `"`, `\`)
	f.Add("accept-language,,A", "de;q=0.1", "\xff")
	f.Fuzz(func(t *testing.T, vary, a, b string) {
		fields, all := middleware.Varies(http.Header{"Vary": {vary}})
		again, _ := middleware.Varies(http.Header{"Vary": {vary, vary}})
		if !slices.Equal(fields, again) || all && fields != nil {
			t.Fatalf("%q: %q, twice %q", vary, fields, again)
		}
		if strings.Contains(vary, "*") && !all && slices.Contains(strings.Split(vary, ","), "*") && !strings.Contains(vary, `"`) {
			t.Fatalf("%q: a star was missed", vary)
		}
		for _, field := range fields {
			h := http.Header{"Accept-Encoding": {b}, "Foo": {a}, "Accept-Language": {a, b}, field: {a, b}}
			one := middleware.Variant(fields, h)
			if joined := (http.Header{"Accept-Encoding": {b}, "Foo": {a}, "Accept-Language": {a + ", " + b}, field: {a + ", " + b}}); field != "Foo" && field != "Accept-Encoding" &&
				!strings.Contains(a, `"`) && middleware.Variant(fields, joined) != one {
				t.Fatalf("%q: two lines %q and %q are another list than one", field, a, b)
			}
			delete(h, field)
			if middleware.Variant(fields, h) == one {
				t.Fatalf("%q: absent is %q", field, a)
			}
		}
	})
}
