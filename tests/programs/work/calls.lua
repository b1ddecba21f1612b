-- SPDX-License-Identifier: MIT
-- A run of lua with errors through pcall, coroutines, closures, metatables, strings and the collector.
-- Tables are keyed by numbers and strings only: keys that are addresses would make counts vary.

local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
print("fib", fib(18))

local function fail_at(depth)
  if depth == 0 then error({ code = 42 }) end
  return fail_at(depth - 1) + 1
end
local caught = 0
for i = 1, 300 do
  local ok, problem = pcall(fail_at, i % 20)
  if not ok and problem.code == 42 then caught = caught + 1 end
  ok, problem = pcall(function() local nothing; return nothing.field end)
  if not ok and type(problem) == "string" then caught = caught + 1 end
  ok = xpcall(function() return #nil end, function(m) return "handled " .. #m end)
  if not ok then caught = caught + 1 end
end
print("caught", caught)

local function numbers(limit)
  return coroutine.wrap(function()
    for i = 1, limit do coroutine.yield(i) end
    error("exhausted", 0)
  end)
end
local sum = 0
for _ = 1, 40 do
  local next_number = numbers(50)
  while true do
    local ok, value = pcall(next_number)
    if not ok then break end
    sum = sum + value
  end
end
print("coroutines", sum)

local point = {}
point.__index = point
point.__add = function(a, b) return setmetatable({ x = a.x + b.x }, point) end
point.__eq = function(a, b) return a.x == b.x end
point.__lt = function(a, b) return a.x < b.x end
point.__concat = function(a, b) return tostring(a.x or a) .. ":" .. tostring(b.x or b) end
point.__close = function(a) a.closed = true end
local total = setmetatable({ x = 0 }, point)
for i = 1, 500 do
  local step <close> = setmetatable({ x = i }, point)
  total = total + step
end
print("points", total.x, total .. total, total == setmetatable({ x = 125250 }, point))

local words = {}
for word in ("the quick brown fox jumps over the lazy dog "):rep(20):gmatch("%a+") do
  words[#words + 1] = word:upper():reverse():gsub("O", "0")
end
table.sort(words)
print("words", #words, words[1], words[#words], table.concat(words, ",", 1, 5))
print(("%5.2f|%-6s|%q|%x"):format(3.14159, "ab", "line\nbreak", 255), ("x"):byte(), #string.pack("i4z", 7, "zip"))

local list = {}
for i = 1, 2000 do list[i] = (i * 7919) % 1009 end
table.sort(list, function(a, b) return a > b end)
print("sorted", list[1], list[1000], list[2000], select("#", table.unpack(list, 1, 100)))

local chunk = assert(load("local a, b = ... ; return a // b, a % b, a << 2, a ~ b, a / b, a ^ 2"))
print("chunk", chunk(17, 5))
print(pcall(load, "return 1 +"))
print(load("return 1 +"))

local weak = setmetatable({}, { __mode = "v" })
for i = 1, 200 do weak[i] = { i } end
collectgarbage("collect")
collectgarbage("generational")
for i = 1, 3000 do local garbage = { tostring(i), i } end
collectgarbage("incremental")
local left = 0
for _ in pairs(weak) do left = left + 1 end
print("weak", left, utf8.len("häßlich"), math.type(3.0), math.tointeger(8.0), string.rep("ab", 3, "-"))
