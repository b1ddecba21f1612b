// SPDX-License-Identifier: MIT
//! Rust through hooked functions: panics caught and resumed, threads, trait objects, closures,
//! generics, strings and maps with a fixed hasher.
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::panic;
use std::thread;

#[derive(Default)]
struct PlainHasher(u64);

impl Hasher for PlainHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(31).wrapping_add(u64::from(*byte));
        }
    }
}

trait Shape {
    fn area(&self) -> f64;
}
struct Square(f64);
struct Circle(f64);
impl Shape for Square {
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}
impl Shape for Circle {
    fn area(&self) -> f64 {
        self.0 * self.0 * 3.0
    }
}

struct Guard<'a>(&'a mut u64);
impl Drop for Guard<'_> {
    fn drop(&mut self) {
        *self.0 += 1;
    }
}

/// Hides a value from the optimiser; Debian 12's rustc does not have std::hint::black_box.
fn opaque<T>(value: T) -> T {
    let seen = unsafe { std::ptr::read_volatile(&value) };
    std::mem::forget(value);
    seen
}

#[no_mangle]
#[inline(never)]
pub fn dive_rust(depth: u32) -> u32 {
    if depth == 0 {
        panic!("bottom");
    }
    let mut unused = 0;
    let guard = Guard(opaque(&mut unused));
    let below = dive_rust(depth - 1);
    drop(guard);
    below + 1
}

#[no_mangle]
#[inline(never)]
pub fn collatz(mut n: u64) -> u64 {
    let mut steps = 0;
    while n != 1 {
        n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    opaque(steps)
}

fn main() {
    panic::set_hook(Box::new(|_| {}));
    let caught = (0..100).filter(|_| panic::catch_unwind(|| dive_rust(20)).is_err()).count();

    let workers: Vec<_> = (0..4u64)
        .map(|w| thread::spawn(move || (1..=500).map(|n| collatz(n + w)).sum::<u64>()))
        .collect();
    let steps: u64 = workers.into_iter().map(|w| w.join().unwrap()).sum();

    let shapes: Vec<Box<dyn Shape>> = (1..50)
        .map(|i| -> Box<dyn Shape> {
            if i % 2 == 0 { Box::new(Square(f64::from(i))) } else { Box::new(Circle(f64::from(i))) }
        })
        .collect();
    let area: f64 = shapes.iter().map(|s| s.area()).sum();

    let mut words: HashMap<String, usize, BuildHasherDefault<PlainHasher>> = HashMap::default();
    for i in 0..2000 {
        *words.entry(format!("word{}", i * 7919 % 101)).or_insert(0) += i;
    }
    let sorted: BTreeMap<_, _> = words.iter().collect();
    let text: String = sorted.iter().take(5).map(|(k, v)| format!("{k}={v} ")).collect();
    println!("caught {caught} steps {steps} area {area} {text}");
    println!("total dive_rust {}", 100 * 21);
    println!("total collatz {}", 4 * 500);
}
