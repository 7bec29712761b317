// What a C++ shared library gets from its compiler's start files, for one that is linked without a
// compiler (`hone compile --emit so`): the handle its destructors are registered under, and their
// call when the library is unloaded (Itanium C++ ABI, 3.3.5).

extern "C" {

void __cxa_finalize(void* handle);

extern void* __dso_handle;
__attribute__((visibility("hidden"))) void* __dso_handle = &__dso_handle;

}  // extern "C"

__attribute__((destructor)) static void EndLibrary() { __cxa_finalize(&__dso_handle); }
