% SPDX-License-Identifier: MIT
% Backtracking, exceptions, assertions, threads, collection.
half(N, _) :- N mod 2 =:= 1, throw(odd(N)).
half(N, H) :- H is N // 2.
safe_half(N, H) :- catch(half(N, H), odd(K), H is K mod 7).
queens(N, Qs) :- numlist(1, N, Ns), permutation(Ns, Qs), safe(Qs), !.
safe([]).
safe([Q|Qs]) :- no_attack(Q, Qs, 1), safe(Qs).
no_attack(_, [], _).
no_attack(Q, [P|Ps], D) :- abs(Q - P) =\= D, D1 is D + 1, no_attack(Q, Ps, D1).
worker(W, Sum) :- numlist(1, 1000, Ns), foldl([N, A, B]>>(M is N * W, safe_half(M, H), B is A + H), Ns, 0, Sum).
:- dynamic seen/2.
main :-
    queens(6, Qs),
    findall(S, (member(W, [1, 2, 3]), thread_create(worker(W, R), Id), thread_join(Id, true), worker(W, R), S = R), Parts),
    sum_list(Parts, Sum),
    forall(between(1, 3000, N), (K is N mod 97, assertz(seen(K, N)))),
    garbage_collect,
    aggregate_all(count, seen(5, _), Count),
    format("~w ~w ~w~n", [Qs, Sum, Count]), halt.
:- initialization(main).
