-- SPDX-License-Identifier: MIT
-- Calls, tables, closures, strings, errors and coroutines; the argument scales it.
local scale = tonumber(arg and arg[1]) or 1

local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end

local function sieve(limit)
  local composite, primes = {}, 0
  for i = 2, limit do
    if not composite[i] then
      primes = primes + 1
      for j = i * i, limit, i do composite[j] = true end
    end
  end
  return primes
end

local function words(count)
  local seen, parts = {}, {}
  for i = 1, count do
    local word = string.format("w%d", i * 7919 % 4099)
    seen[word] = (seen[word] or 0) + 1
    parts[#parts + 1] = word:upper():sub(1, 3)
  end
  return #table.concat(parts, ",")
end

local function failures(count)
  local caught = 0
  for i = 1, count do
    if not pcall(function() if i % 2 == 0 then error("even") end end) then caught = caught + 1 end
  end
  return caught
end

local function generated(count)
  local sum, next_value = 0, coroutine.wrap(function() for i = 1, count do coroutine.yield(i) end end)
  for _ = 1, count do sum = sum + next_value() end
  return sum
end

for _ = 1, scale do
  print(fib(24), sieve(60000), words(30000), failures(20000), generated(30000))
end
