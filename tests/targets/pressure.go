// A thousand goroutines at a time that recurse deep, so that their stacks are moved, and make
// garbage, so that the collector looks through those; each round of each checks its own result.
// pressure ROUNDS [wait]
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
)

const goroutines = 1000

type node struct {
	next    *node
	value   int
	garbage [14]int
}

//go:noinline
func link(next *node, value int) *node { return &node{next: next, value: value} }

//go:noinline
func walk(depth int, list *node) int {
	var room [24]int
	room[depth%24] = depth
	list = link(list, depth)
	if depth == 0 {
		sum := 0
		for at := list; at != nil; at = at.next {
			sum += at.value
		}
		return sum
	}
	return walk(depth-1, list) + room[depth%24]
}

//go:noinline
func recovers(depth int) (result int) {
	defer func() {
		result = recover().(int)
	}()
	panics(depth)
	return
}

//go:noinline
func panics(depth int) int {
	if depth == 0 {
		panic(7)
	}
	return panics(depth-1) + 1
}

func main() {
	rounds, _ := strconv.Atoi(os.Args[1])
	debug.SetGCPercent(20)
	if len(os.Args) > 2 {
		fmt.Println("ready")
		os.Stdin.Read(make([]byte, 1))
	}
	var calls, links, panicked, wrong int64
	stacks := uint64(0)
	for round := 0; round < rounds; round++ {
		var group sync.WaitGroup
		for i := 0; i < goroutines; i++ {
			group.Add(1)
			go func(i int) {
				defer group.Done()
				depth := 10 + i%20
				if i%100 == 0 {
					depth = 2000 // grows its stack from 8 KB to a megabyte
				}
				if walk(depth, nil) != depth*(depth+1) {
					atomic.AddInt64(&wrong, 1)
				}
				atomic.AddInt64(&calls, int64(depth+1))
				atomic.AddInt64(&links, int64(depth+1))
				if i%10 == 0 {
					runtime.Gosched()
					if recovers(i%7) != 7 {
						atomic.AddInt64(&wrong, 1)
					}
					atomic.AddInt64(&panicked, 1)
				}
			}(i)
		}
		group.Wait()
		runtime.GC()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		if memory.StackInuse > stacks {
			stacks = memory.StackInuse
		}
	}
	fmt.Printf("walks %d links %d recovered %d wrong %d\n", calls, links, panicked, wrong)
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	fmt.Fprintf(os.Stderr, "collections %d stacks %d\n", memory.NumGC, stacks)
}
