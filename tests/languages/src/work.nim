# SPDX-License-Identifier: MIT
# Closures, iterators, exceptions, reference counting with cycles, tables.
import std/[tables, strutils, sequtils]

type
  Odd = object of CatchableError
  Node = ref object
    key: int
    left, right, parent: Node

proc half(n: int): int =
  if n mod 2 == 1: raise newException(Odd, $n)
  n div 2

proc insert(root: var Node, key: int, parent: Node = nil) =
  if root == nil: root = Node(key: key, parent: parent)
  elif key < root.key: insert(root.left, key, root)
  elif key > root.key: insert(root.right, key, root)

iterator keys(root: Node): int =
  var stack: seq[Node]
  var at = root
  while at != nil or stack.len > 0:
    while at != nil:
      stack.add at
      at = at.left
    at = stack.pop
    yield at.key
    at = at.right

proc adder(): proc (n: int): int =
  var total = 0
  result = proc (n: int): int =
    total += n
    total

var root: Node
var state = 12345
for _ in 1 .. 10_000:
  state = (state * 1103515245 + 12345) and 0x3fffffff
  insert(root, state mod 5003)
let add = adder()
for key in keys(root): discard add(key)
for n in 1 .. 4000:
  try: discard add(half(n))
  except Odd: discard add(1)
var counts = initCountTable[string]()
for n in 1 .. 20_000: counts.inc($(n mod 997))
GC_fullCollect()
echo add(0), " ", counts.len, " ", toSeq(1 .. 99).mapIt($it).join.len
