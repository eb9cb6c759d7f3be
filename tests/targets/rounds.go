// A Go program without an end: goroutines whose stacks grow while they call step, and that check each
// sum. For each byte that it reads it says how many rounds they have made, and how many were wrong.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"
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

var rounds, wrong int64

func work() {
	const depth = 40
	for {
		sum := make(chan int)
		go func() { sum <- grow(depth) }()
		if <-sum != depth*(depth+1)/2*3+depth+1 {
			atomic.AddInt64(&wrong, 1)
		}
		if atomic.AddInt64(&rounds, 1)%100 == 0 {
			runtime.GC()
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func main() {
	for i := 0; i < 4; i++ {
		go work()
	}
	fmt.Println("ready")
	one := make([]byte, 1)
	for {
		if n, _ := os.Stdin.Read(one); n != 1 {
			return
		}
		fmt.Printf("rounds %d wrong %d\n", atomic.LoadInt64(&rounds), atomic.LoadInt64(&wrong))
	}
}
