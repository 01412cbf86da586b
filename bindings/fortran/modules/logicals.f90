! headway_logicals: .TRUE. and .FALSE. as this compiler has them, for libmpifort_abi, which has no Fortran
! in it. It is linked where they are others than 1 and 0, and takes the place of the library's own.
module headway_logicals
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  private
  integer(c_int), bind(C, name="headway_fortran_logical"), save, public :: values(2) = &
      [transfer(.true., 0_c_int), transfer(.false., 0_c_int)]
end module headway_logicals
