// SPDX-License-Identifier: MIT
//! Closures, panics that are caught, threads with channels, boxed trait objects.
use std::collections::{BTreeMap, HashMap};
use std::panic;
use std::sync::mpsc;
use std::thread;

trait Shape {
    fn area(&self) -> u64;
}
struct Square(u64);
struct Row(Vec<u64>);
impl Shape for Square {
    fn area(&self) -> u64 {
        self.0 * self.0
    }
}
impl Shape for Row {
    fn area(&self) -> u64 {
        self.0.iter().sum()
    }
}

fn half(n: u64) -> u64 {
    if n % 2 == 1 {
        panic!("odd");
    }
    n / 2
}

fn main() {
    panic::set_hook(Box::new(|_| {}));
    let (send, receive) = mpsc::channel();
    let workers: Vec<_> = (0..4u64)
        .map(|w| {
            let send = send.clone();
            thread::spawn(move || {
                let mut total = 0;
                for n in 1..1000 {
                    total += panic::catch_unwind(|| half(n * (w + 1))).unwrap_or(1);
                }
                send.send(total).unwrap();
            })
        })
        .collect();
    drop(send);
    let sum: u64 = receive.iter().sum();
    for worker in workers {
        worker.join().unwrap();
    }
    let mut tree = BTreeMap::new();
    let mut table = HashMap::new();
    for n in 0..20_000u64 {
        *tree.entry(n * 7919 % 1009).or_insert(0) += n;
        *table.entry((n % 997).to_string()).or_insert(0u64) += 1;
    }
    let shapes: Vec<Box<dyn Shape>> =
        (0..500).map(|n| if n % 2 == 0 { Box::new(Square(n)) as Box<dyn Shape> } else { Box::new(Row((0..n).collect())) }).collect();
    let areas: u64 = shapes.iter().map(|s| s.area()).sum();
    println!("{} {} {} {}", sum, tree.values().max().unwrap(), table.len(), areas);
}
