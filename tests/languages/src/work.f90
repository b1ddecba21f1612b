! SPDX-License-Identifier: MIT
! Internal procedures with host association, recursion, allocatable arrays, polymorphism.
module shapes
  implicit none
  type, abstract :: shape
  contains
    procedure(area_of), deferred :: area
  end type
  type, extends(shape) :: square
    integer(8) :: side
  contains
    procedure :: area => square_area
  end type
  abstract interface
    integer(8) function area_of(self)
      import :: shape
      class(shape), intent(in) :: self
    end function
  end interface
contains
  integer(8) function square_area(self)
    class(square), intent(in) :: self
    square_area = self%side * self%side
  end function

  integer(8) function apply(f, count)
    interface
      integer(8) function f(n)
        integer(8), intent(in) :: n
      end function
    end interface
    integer, intent(in) :: count
    integer :: i
    apply = 0
    do i = 1, count
      apply = apply + f(int(i, 8))
    end do
  end function
end module

program work
  use shapes
  implicit none
  integer(8) :: offset, total
  real(8), allocatable :: a(:, :), b(:, :)
  class(shape), allocatable :: s
  integer :: i

  offset = 5
  total = apply(shifted, 3000)
  do i = 1, 500
    s = square(int(i, 8))
    total = total + s%area()
  end do
  allocate (a(60, 60), b(60, 60))
  a = 1.5d0
  b = matmul(a, a)
  print '(i0,1x,i0,1x,f0.2)', total, fibonacci(20), sum(b)
contains
  integer(8) function shifted(n)
    integer(8), intent(in) :: n
    shifted = n + offset
  end function

  recursive integer(8) function fibonacci(n) result(r)
    integer, intent(in) :: n
    if (n < 2) then
      r = n
    else
      r = fibonacci(n - 1) + fibonacci(n - 2)
    end if
  end function
end program
