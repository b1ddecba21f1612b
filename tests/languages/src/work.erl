%% SPDX-License-Identifier: MIT
%% Processes with messages, exceptions, closures, collection.
-module(work).
-export([main/0]).

half(N) when N rem 2 =:= 1 -> throw({odd, N});
half(N) -> N div 2.

safe_half(N) -> try half(N) catch throw:{odd, K} -> K rem 7 end.

worker(Parent, W) ->
    Parent ! {part, lists:sum([safe_half(N * W) || N <- lists:seq(1, 2000)])}.

main() ->
    Self = self(),
    [spawn(fun() -> worker(Self, W) end) || W <- lists:seq(1, 50)],
    Sum = lists:sum([receive {part, P} -> P end || _ <- lists:seq(1, 50)]),
    Table = lists:foldl(fun(N, T) -> T#{integer_to_list(N rem 997) => N} end, #{}, lists:seq(1, 20000)),
    erlang:garbage_collect(),
    io:format("~p ~p ~p~n", [Sum, maps:size(Table), length(integer_to_list(binary:decode_unsigned(<<1:8000>>)))]),
    halt(0).
