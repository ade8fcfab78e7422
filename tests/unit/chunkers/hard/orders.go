// Package orders does orders.
package orders

import (
	"context"
	"fmt"
)

const (
	StatusNew Status = iota
	StatusPaid
)

var ErrNotFound = fmt.Errorf("not found")

// Status of an order.
type Status int

func (s Status) String() string { return "x" }

type (
	ID   = string
	Pair[K comparable, V any] struct {
		Key K
		Val V
	}
)

// Repo finds orders.
type Repo interface {
	Find(ctx context.Context, id ID) (*Order, error)
	fmt.Stringer
}

type Order struct {
	*Base
	ID    ID `json:"id"`
	Lines []struct{ SKU string }
}

// Get returns the value.
func (p *Pair[K, V]) Get() V { return p.Val }
func (Pair[_, V]) Zero() (v V) { return }

func Map[T, U any](in []T, f func(T) U) []U {
	out := make([]U, 0, len(in))
	for _, v := range in {
		out = append(out, f(v))
	}
	return out
}

func init() {}

//go:embed schema.sql
var schema string

var handler = func(w http.ResponseWriter, r *http.Request) {
	fmt.Fprint(w, "x")
}

func ExampleMap() { Map(nil, nil) }
func TestMap(t *testing.T) { t.Run("x", func(t *testing.T) {}) }
