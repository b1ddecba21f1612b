{ SPDX-License-Identifier: MIT }
program timed_nested;
uses cthreads;
{ Nested procedures read the arguments of the procedure around them through its frame pointer; the
  ninth and later arguments are on the stack. }
function outer(a, b, c, d, e, f, g, h, i, j: int64): int64;
var total: int64;
  procedure add(times: int64);
  begin
    total := total + times * (a + 2 * b + g + 10 * h + 100 * i + 1000 * j);
  end;
  procedure change;
  begin
    j := j + 1;
  end;
begin
  total := 0;
  add(1);
  change;
  add(2);
  outer := total + c + d + e + f;
end;
var sum: int64; n: longint;
begin
  sum := 0;
  for n := 1 to 1000 do
    sum := sum + outer(n, 2, 3, 4, 5, 6, 7, 8, 9, n);
  writeln(sum);
end.
