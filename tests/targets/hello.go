// A Go program whose goroutines grow their stacks while they call step.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
)

//go:noinline
func step(n int) int { return n*3 + 1 }

//go:noinline
func grow(depth int) int {
	var room [64]int
	room[depth%64] = step(depth)
	if depth == 0 {
		return room[0]
	}
	return grow(depth-1) + room[depth%64]
}

//go:noinline
func label(name string, numbers []int, last int) int { return len(name) + len(numbers) + last }

type tally struct{ total int }

//go:noinline
func (t *tally) Inc(by int) int {
	t.total += by
	return t.total
}

func main() {
	rounds, _ := strconv.Atoi(os.Args[1])
	label("gopher", make([]int, 3, 5), -7)
	counter := &tally{}
	if len(os.Args) > 2 {
		fmt.Println("ready")
		os.Stdin.Read(make([]byte, 1))
	}
	for i := 1; i <= 5; i++ {
		counter.Inc(i)
	}
	var group sync.WaitGroup
	sums := make([]int, 8)
	for i := range sums {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			for round := 0; round < rounds; round++ {
				sums[i] += grow(40)
			}
			runtime.GC()
		}(i)
	}
	group.Wait()
	total := counter.total - 15
	for _, sum := range sums {
		total += sum
	}
	fmt.Printf("calls %d total %d\n", 8*rounds*41, total)
}
