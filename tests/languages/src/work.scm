;;; SPDX-License-Identifier: MIT
;;; Closures, call/cc, dynamic-wind, collection.
(define (half n escape) (if (odd? n) (escape 1) (quotient n 2)))
(define (safe-half n) (call-with-current-continuation (lambda (escape) (half n escape))))
(define (make-adder) (let ((total 0)) (lambda (n) (set! total (+ total n)) total)))
(define (iota-down n) (let loop ((n n) (l '())) (if (= n 0) l (loop (- n 1) (cons n l)))))
(define (tree-sum n) (if (= n 0) 1 (+ (tree-sum (- n 1)) (tree-sum (- n 1)))))
(define winds 0)
(define add (make-adder))
(for-each (lambda (n) (add (safe-half n))) (iota-down 3000))
(for-each (lambda (n)
            (call-with-current-continuation
             (lambda (k) (dynamic-wind (lambda () (set! winds (+ winds 1)))
                                       (lambda () (k n))
                                       (lambda () (set! winds (+ winds 1)))))))
          (iota-down 500))
(display (list (add 0) winds (tree-sum 14) (length (map number->string (iota-down 20000)))))
(newline)
