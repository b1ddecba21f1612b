// SPDX-License-Identifier: MIT

// Known totals of a Go program: for each byte of its input, goroutines that call, grow their stacks by recursion,
// use channels, allocate, collect garbage, lock threads, run a program, and answer and make HTTP requests.
package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

//go:noinline
func work(x int) int { return x + 1 }

//go:noinline
func deep(n int) int {
	var frame [64]int
	frame[n%64] = n
	if n == 0 {
		return frame[0]
	}
	return deep(n-1) + frame[n%64] - n
}

//go:noinline
func produce(to chan int, count int) {
	for i := 0; i < count; i++ {
		to <- work(i)
	}
	close(to)
}

// The sum of depth * 2^(10 - depth), and of 1 for each of the 1024 leaves.
const treeSum = 1024 + 1*512 + 2*256 + 3*128 + 4*64 + 5*32 + 6*16 + 7*8 + 8*4 + 9*2 + 10*1

type node struct {
	left, right *node
	value       int
}

//go:noinline
func tree(depth int) *node {
	if depth == 0 {
		return &node{value: 1}
	}
	return &node{tree(depth - 1), tree(depth - 1), depth}
}

func (n *node) sum() int {
	if n == nil {
		return 0
	}
	return n.value + n.left.sum() + n.right.sum()
}

//go:noinline
func (n *node) get() int { return n.value }

// The first instruction of get faults.
func fault() (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	var none *node
	return strconv.Itoa(none.get())
}

//go:noinline
func answer(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello %s", r.URL.Path) }

func check(holds bool, what string) {
	if !holds {
		panic(what)
	}
}

func request(address string, number int) {
	reply, err := http.Get("http://" + address + "/" + strconv.Itoa(number))
	check(err == nil, "get")
	body, err := io.ReadAll(reply.Body)
	reply.Body.Close()
	check(err == nil && string(body) == "hello /"+strconv.Itoa(number), "body")
}

func run(number, calls int, address string) {
	if number%3 == 0 {
		runtime.LockOSThread() // its thread ends with it
	}
	sum := 0
	for i := 0; i < calls; i++ {
		sum = work(sum)
	}
	check(sum == calls && deep(3000) == 0, "sum")
	to := make(chan int, 3)
	go produce(to, 100)
	sum = 0
	for value := range to {
		sum += value
	}
	check(sum == 5050, "channel")
	check(tree(10).sum() == treeSum, "tree")
	check(strings.Contains(fault(), "nil pointer"), "fault")
	runtime.GC()
	request(address, number)
	if number == 0 {
		out, err := exec.Command("/bin/echo", "x").Output()
		check(err == nil && strings.TrimSpace(string(out)) == "x", "echo")
	}
}

func main() {
	count, _ := strconv.Atoi(os.Args[1])
	calls, _ := strconv.Atoi(os.Args[2])
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err == nil, "listen")
	http.HandleFunc("/", answer)
	go http.Serve(listener, nil)
	fmt.Println("ready")
	input := bufio.NewReader(os.Stdin)
	for {
		if _, err := input.ReadByte(); err != nil {
			break
		}
		var all sync.WaitGroup
		for i := 0; i < count; i++ {
			all.Add(1)
			go func(number int) {
				defer all.Done()
				run(number, calls, listener.Addr().String())
			}(i)
		}
		all.Wait()
		fmt.Println("done")
	}
}
