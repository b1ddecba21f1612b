;;; SPDX-License-Identifier: MIT
;;; Closures, conditions with restarts, collection, hash tables.
(define-condition odd-number (error) ((n :initarg :n :reader n)))
(defun half (n) (if (oddp n) (error 'odd-number :n n) (/ n 2)))
(defun adder () (let ((total 0)) (lambda (n) (incf total n))))
(let ((add (adder)) (table (make-hash-table :test 'equal)))
  (loop for n from 1 to 3000
        do (funcall add (handler-case (half n) (odd-number (c) (mod (n c) 7)))))
  (loop for n from 1 to 20000 do (incf (gethash (princ-to-string (mod n 997)) table 0)))
  #+sbcl (sb-ext:gc :full t)
  (format t "~d ~d ~d~%" (funcall add 0) (hash-table-count table) (mod (expt 7 2000) 1000003)))
