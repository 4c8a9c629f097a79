package stale

import "fmt"

// Phase says what a value is good for at its age. Phases are ordered by
// usefulness, so phase >= WhileRevalidate asks "may it be served at once?".
type Phase uint8

const (
	// Expired: not served any more. It is the zero value, so that what nobody
	// judged is not served.
	Expired Phase = iota
	// IfError: served only in place of an error or a wait.
	IfError
	// WhileRevalidate: served at once, and computed again behind the answer.
	WhileRevalidate
	// Fresh: served without question.
	Fresh
)

// String is the phase in the words of RFC 5861 and RFC 9111: "expired",
// "if-error", "while-revalidate", "fresh".
func (p Phase) String() string {
	switch p {
	case Expired:
		return "expired"
	case IfError:
		return "if-error"
	case WhileRevalidate:
		return "while-revalidate"
	case Fresh:
		return "fresh"
	default:
		return fmt.Sprintf("Phase(%d)", uint8(p))
	}
}
