// SPDX-License-Identifier: MIT
// Go calls C and C calls Go, from eight goroutines; stacks grow, garbage is collected, a fault becomes a panic.
package main

/*
#include <stdlib.h>
#include <string.h>
static int cfunc(int x) { int s = 0; for (int i = 0; i < 10; i++) s += x ^ i; return s; }
extern int goCallback(int);
static int callsBack(int x) { return goCallback(x) + 1; }
*/
import "C"
import (
	"fmt"
	"os"
	"runtime"
	"sync"
)

//export goCallback
func goCallback(x C.int) C.int { return x * 2 }

func deep(n int) int {
	var b [256]byte
	b[n%256] = 1
	if n == 0 {
		return int(b[0])
	}
	return deep(n-1) + int(b[3])
}

func try() (r int) {
	defer func() {
		if e := recover(); e != nil {
			r = 5
		}
	}()
	var p *int
	return *p
}

func main() {
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for i := 0; i < 8; i++ {
		wg.Add(1)
		go func(i int) { defer wg.Done(); s := 0; for k := 0; k < 2000; k++ { s += int(C.cfunc(C.int(k))); s += int(C.callsBack(C.int(k))) }; s += deep(5000) + try(); runtime.GC(); mu.Lock(); total += s; mu.Unlock() }(i)
	}
	wg.Wait()
	fmt.Println(total, len(os.Args))
}
