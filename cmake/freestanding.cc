// What the compiler may call although we use no exceptions and no heap: the library links against
// libc alone, so these few symbols of the C++ runtime are here, hidden. None of them is ever
// reached by correct code; each one stops the process. Linked into the shared library only: unit
// tests have the real ones.
#include <cstddef>
#include <cstdlib>
#include <new>

// A class with virtual functions and a virtual destructor names these in its table.
extern "C" [[noreturn]] void __cxa_pure_virtual();
extern "C" void __cxa_pure_virtual() { abort(); }
void operator delete(void*) noexcept { abort(); }
void operator delete(void*, size_t) noexcept { abort(); }
void operator delete(void*, std::align_val_t) noexcept { abort(); }
void operator delete(void*, size_t, std::align_val_t) noexcept { abort(); }

// Range checks of std::array, std::string_view and std::optional end here.
namespace std {
[[noreturn]] void __throw_out_of_range_fmt(const char*, ...);
[[noreturn]] void __throw_length_error(const char*);
[[noreturn]] void __throw_logic_error(const char*);
[[noreturn]] void __throw_bad_function_call();
[[noreturn]] void __throw_bad_array_new_length();
void __throw_out_of_range_fmt(const char*, ...) { abort(); }
void __throw_length_error(const char*) { abort(); }
void __throw_logic_error(const char*) { abort(); }
void __throw_bad_function_call() { abort(); }
void __throw_bad_array_new_length() { abort(); }
}  // namespace std
