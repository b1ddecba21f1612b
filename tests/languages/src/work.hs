-- SPDX-License-Identifier: MIT
-- Laziness, exceptions, garbage collection, threads with MVars.
module Main (main) where

import Control.Concurrent
import Control.Exception
import Control.Monad
import qualified Data.Map.Strict as Map
import System.Mem (performGC)

data Odd = Odd Int deriving Show
instance Exception Odd

half :: Int -> IO Int
half n | odd n = throwIO (Odd n)
       | otherwise = return (n `div` 2)

count :: Int -> Map.Map Int Int
count n = foldr (\k -> Map.insertWith (+) (k * 7919 `mod` 1009) 1) Map.empty [1 .. n]

main :: IO ()
main = do
  boxes <- forM [1 .. 4] $ \w -> do
    box <- newEmptyMVar
    _ <- forkIO (putMVar box $! sum (map (* w) (Map.elems (count 20000))))
    return box
  parts <- mapM takeMVar boxes
  performGC
  halves <- forM [1 .. 5000] $ \n -> half n `catch` \(Odd k) -> return (k `mod` 3)
  let primes = sieve [2 ..] where sieve (p : ns) = p : sieve [n | n <- ns, n `mod` p /= 0]
                                  sieve [] = []
  print (sum parts, sum halves, primes !! 800)
