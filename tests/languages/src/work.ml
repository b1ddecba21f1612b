(* SPDX-License-Identifier: MIT *)
(* Closures, exceptions, minor and major collections. *)
exception Odd of int

type tree = Leaf | Node of tree * int * tree

let rec insert key = function
  | Leaf -> Node (Leaf, key, Leaf)
  | Node (left, k, right) when key < k -> Node (insert key left, k, right)
  | Node (left, k, right) when key > k -> Node (left, k, insert key right)
  | same -> same

let rec sum = function Leaf -> 0 | Node (left, k, right) -> sum left + k + sum right

let compose fs x = List.fold_left (fun value f -> f value) x fs

let half n = if n land 1 = 1 then raise (Odd n) else n / 2

let rec halvings n = try 1 + halvings (half n) with Odd _ -> 0

let () =
  let tree = ref Leaf and state = ref 12345 in
  for _ = 1 to 30_000 do
    state := (!state * 1103515245 + 12345) land 0x3fffffff;
    tree := insert (!state mod 10_007) !tree
  done;
  Gc.compact ();
  let steps = List.init 50 (fun n x -> (x * n + 7) land 0xffff) in
  let total = ref 0 in
  for n = 1 to 5_000 do
    total := !total + compose steps n + halvings (n * 64)
  done;
  let table = Hashtbl.create 16 in
  for n = 1 to 20_000 do Hashtbl.replace table (string_of_int (n mod 997)) n done;
  Printf.printf "%d %d %d\n" (sum !tree) !total (Hashtbl.length table)
