# SPDX-License-Identifier: MIT
# Blocks, exceptions, garbage collection, fibers with channels.
class Odd < Exception
end

def half(n : Int64) : Int64
  raise Odd.new(n.to_s) if n.odd?
  n // 2
end

def fibonacci(n : Int32) : Int64
  n < 2 ? n.to_i64 : fibonacci(n - 1) + fibonacci(n - 2)
end

results = Channel(Int64).new
4.times do |w|
  spawn do
    total = 0_i64
    1.upto(2000) do |n|
      total += begin
        half(n.to_i64 * (w + 1))
      rescue Odd
        1_i64
      end
      Fiber.yield if n % 100 == 0
    end
    results.send total
  end
end
sum = (0...4).sum { results.receive }
words = (0...20_000).map { |n| (n * 7919 % 1009).to_s }
GC.collect
puts "#{sum} #{words.tally.size} #{fibonacci(22)}"
