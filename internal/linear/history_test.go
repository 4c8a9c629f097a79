package linear_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/linear"
)

const patience = time.Minute

type (
	register = linear.Step[linear.Register]
	row      = linear.Step[linear.Row]
)

// inTurn has steps one after the other.
func inTurn[S comparable](steps ...linear.Step[S]) *linear.History[S] {
	h := new(linear.History[S])
	for _, s := range steps {
		h.Did("k", h.Now(), s)
	}
	return h
}

func TestARegisterIsWhatItsLastWriteOrDeletionLeft(t *testing.T) {
	begun, written := linear.Begun{Fence: 5}, linear.Written{Fence: 5, Value: "v"}
	for says, steps := range map[string][]register{
		"empty":                     {linear.Found{}},
		"written":                   {begun, written, linear.Found{Value: "v", Fence: 5}},
		"written again":             {begun, written, written, linear.Found{Value: "v", Fence: 5}},
		"removed":                   {begun, written, linear.Begun{Fence: 6, Newer: "v", Of: 5}, linear.Written{Fence: 6}, linear.Found{}},
		"seen before":               {begun, written, linear.Begun{Fence: 6, Seen: 5}},
		"the later number stands":   {begun, linear.Begun{Fence: 6}, linear.Written{Fence: 6, Value: "w"}, linear.Refused{Fence: 5}, linear.Found{Value: "w", Fence: 6}},
		"begun before the deletion": {begun, linear.Erased{}, linear.Refused{Fence: 5}, linear.Found{}},
		"begun after the deletion":  {linear.Erased{}, begun, written},
	} {
		assert.NoError(t, inTurn(steps...).Check(patience), says)
	}
	for says, steps := range map[string][]register{
		"a value from nowhere":               {linear.Found{Value: "v", Fence: 5}},
		"a value under another number":       {begun, written, linear.Found{Value: "v", Fence: 4}},
		"a lost write":                       {begun, written, linear.Found{}},
		"a number twice":                     {begun, begun},
		"a number that goes back":            {begun, linear.Erased{}, linear.Begun{Fence: 4}},
		"a newer entry that is not shown":    {begun, written, linear.Begun{Fence: 6}},
		"an older one that is":               {begun, written, linear.Begun{Fence: 6, Seen: 5, Newer: "v", Of: 5}},
		"a write over a later one":           {begun, linear.Begun{Fence: 6}, linear.Written{Fence: 6, Value: "w"}, written},
		"a write over a removal":             {begun, linear.Begun{Fence: 6}, linear.Written{Fence: 6}, written},
		"a write over a deletion":            {begun, linear.Erased{}, written},
		"a value that outlives its deletion": {begun, written, linear.Erased{}, linear.Found{Value: "v", Fence: 5}},
		"a refusal without a reason":         {begun, linear.Refused{Fence: 5}},
	} {
		assert.ErrorIs(t, inTurn(steps...).Check(patience), linear.ErrNoOrder, says)
	}
}

func TestARowIsGivenAsItIsSinceItsLastDeletion(t *testing.T) {
	one, two := linear.Changed{Version: 1}, linear.Changed{Version: 2}
	for says, steps := range map[string][]row{
		"as it was at first":     {linear.Given{}},
		"not yet deleted":        {one, two, linear.Given{Version: 1}, linear.Given{Version: 2}},
		"deleted, then changed":  {one, linear.Deleted{}, two, linear.Given{Version: 1}},
		"written over with less": {one, two, linear.Deleted{}, linear.Put{Version: 1}, linear.Given{Version: 1}},
	} {
		assert.NoError(t, inTurn(steps...).Check(patience), says)
	}
	for says, steps := range map[string][]row{
		"deleted":              {one, linear.Deleted{}, linear.Given{}},
		"not there yet":        {linear.Given{Version: 1}, one},
		"written over":         {one, linear.Put{Version: 1}, linear.Given{}},
		"written before it is": {linear.Put{Version: 1}, one},
		"counted wrong":        {two},
	} {
		assert.ErrorIs(t, inTurn(steps...).Check(patience), linear.ErrNoOrder, says)
	}
}

func TestWhatHappensAtTheSameTimeHasEitherOrder(t *testing.T) {
	h := new(linear.History[linear.Row])
	asked := h.Now()
	h.Did("k", h.Now(), linear.Changed{Version: 1})
	h.Did("k", h.Now(), linear.Deleted{})
	h.Did("k", asked, linear.Given{})
	h.Did("another", h.Now(), linear.Given{})
	require.NoError(t, h.Check(patience))
	assert.Equal(t, 4, h.Len())
	h.Did("k", h.Now(), linear.Given{})
	require.ErrorIs(t, h.Check(patience), linear.ErrNoOrder)
}

func TestWhatWasOnlyTriedMayTakeEffectLaterOrNever(t *testing.T) {
	for _, then := range []linear.Found{{}, {Value: "v", Fence: 1}} {
		h := inTurn[linear.Register](linear.Begun{Fence: 1})
		h.Tried("k", h.Now(), linear.Written{Fence: 1, Value: "v"})
		h.Did("k", h.Now(), linear.Found{})
		h.Did("k", h.Now(), then)
		require.NoError(t, h.Check(patience))
		h.Tried("k", h.Now(), linear.Erased{})
		h.Did("k", h.Now(), linear.Found{})
		require.NoError(t, h.Check(patience))
		h.Did("k", h.Now(), linear.Found{Value: "w", Fence: 1})
		require.ErrorIs(t, h.Check(patience), linear.ErrNoOrder)
	}
}

// A write that was given up is refused once something newer has been done.
func TestWhatWasTriedBeforeSomethingCertainCantTakeEffectAfterIt(t *testing.T) {
	before := func() *linear.History[linear.Row] {
		h := inTurn[linear.Row](linear.Changed{Version: 1})
		h.Tried("k", h.Now(), linear.Put{Version: 1})
		h.Did("k", h.Now(), linear.Changed{Version: 2})
		return h
	}
	h := before()
	h.Did("k", h.Now(), linear.Given{Version: 1})
	require.NoError(t, h.Check(patience))
	for _, certain := range []row{linear.Deleted{}, linear.Put{Version: 2}} {
		h := before()
		h.Did("k", h.Now(), certain)
		h.Did("k", h.Now(), linear.Given{Version: 1})
		require.ErrorIs(t, h.Check(patience), linear.ErrNoOrder)
	}
}
