// SPDX-License-Identifier: MIT
// Calls of C with callbacks to Go, goroutines, panics that are recovered, collection.
package main

/*
static long twice(long n) { return 2 * n; }
static long sum_to(long n) { long t = 0; while (n > 0) t += twice(n--); return t; }
extern long addInGo(long, long);
static long fold(long n) { long t = 0; while (n > 0) t = addInGo(t, n--); return t; }
*/
import "C"

import (
	"fmt"
	"runtime"
	"sort"
	"sync"
)

//export addInGo
func addInGo(a, b C.long) C.long { return a + b }

func half(n int) (value int) {
	defer func() {
		if recover() != nil {
			value = 1
		}
	}()
	if n%2 == 1 {
		panic("odd")
	}
	return n / 2
}

func main() {
	var group sync.WaitGroup
	parts := make([]int, 8)
	for w := range parts {
		group.Add(1)
		go func(w int) {
			defer group.Done()
			for n := 1; n < 500; n++ {
				parts[w] += half(n*(w+1)) + int(C.sum_to(C.long(n%20)))
				if n%100 == 0 {
					runtime.Gosched()
				}
			}
		}(w)
	}
	group.Wait()
	words := map[string]int{}
	for n := 0; n < 20000; n++ {
		words[fmt.Sprint(n%997)] += n
	}
	runtime.GC()
	sort.Ints(parts)
	fmt.Println(parts, len(words), C.fold(1000))
}
