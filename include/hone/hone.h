#ifndef HONE_HONE_H_
#define HONE_HONE_H_

/*
 * The C API of Hone's runtime: loads and runs a compiled model (`model.hone`). It needs
 * libhone_runtime, libc, libstdc++, pthread and dl, nothing else of Hone. docs/formats/package.md
 * describes the file.
 *
 *   hone_model* model;
 *   if (hone_model_open("model.hone", NULL, &model) != HONE_OK) puts(hone_last_error());
 *   hone_context* context;
 *   if (hone_context_create(model, NULL, &context) != HONE_OK) puts(hone_last_error());
 *   hone_input inputs[] = {{x, sizeof(x)}};
 *   hone_output outputs[] = {{y, sizeof(y)}};
 *   if (hone_context_run(context, inputs, 1, outputs, 1) != HONE_OK) puts(hone_last_error());
 *   hone_context_destroy(context);
 *   hone_model_close(model);
 *
 * Units: sizes are bytes, times nanoseconds, shapes elements. Text is UTF-8 and ends with 0.
 * Ownership: every text and array handed out belongs to the object it was asked of and lives as
 * long. Thread safety: all functions may be called from many threads at once; exceptions are named
 * below. Errors: a function that can fail returns a hone_status; hone_last_error() then says what,
 * where, why and what to do. Objects are not harmed by a failure. Passing a pointer to
 * another type, or a closed object, is undefined. Trust: a package is code that runs in your
 * process. Open only what you trust.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HONE_API __attribute__((visibility("default")))

/* Numbers are those of gRPC. Others may be returned by later versions. */
typedef enum hone_status {
  HONE_OK = 0,
  HONE_UNKNOWN = 2,
  HONE_INVALID_ARGUMENT = 3,    /* not a package, options out of range, buffers that do not fit */
  HONE_NOT_FOUND = 5,           /* no such file */
  HONE_PERMISSION_DENIED = 7,   /* the file may not be read */
  HONE_RESOURCE_EXHAUSTED = 8,  /* memory, threads or descriptors */
  HONE_FAILED_PRECONDITION = 9, /* this host or runtime cannot run it; both sides are named */
  HONE_OUT_OF_RANGE = 11,       /* an index among an input's values points outside its table */
  HONE_INTERNAL = 13,           /* a fault in Hone or in the package's code */
  HONE_DATA_LOSS = 15 /* the package is damaged: a checksum is wrong, or it is cut short */
} hone_status;

typedef enum hone_dtype {
  HONE_BOOL = 0, /* one byte, 0 or 1 */
  HONE_I8 = 1,
  HONE_U8 = 2,
  HONE_I16 = 3,
  HONE_U16 = 4,
  HONE_I32 = 5,
  HONE_U32 = 6,
  HONE_I64 = 7,
  HONE_U64 = 8,
  HONE_F16 = 9,   /* IEEE 754 binary16 */
  HONE_BF16 = 10, /* the upper half of a binary32 */
  HONE_F32 = 11,
  HONE_F64 = 12
} hone_dtype;

/* A loaded package: code and constants. Never changes. */
typedef struct hone_model hone_model;

/* What one run needs: memory for intermediate results, and the use of threads. Runs of one context
 * take turns; for runs at the same time make a context for each. The contexts of a process share
 * its threads evenly (docs/THREADS.md). */
typedef struct hone_context hone_context;

/* One input or output of a model: a dense tensor, row-major. */
typedef struct hone_tensor_info {
  const char* name;
  hone_dtype dtype;
  int32_t rank;
  const int64_t* shape; /* [rank] */
  size_t bytes;
} hone_tensor_info;

/* Memory of the caller, exactly as large as the tensor; data may be NULL for a tensor of no bytes.
 */
typedef struct hone_input {
  const void* data;
  size_t bytes;
} hone_input;
typedef struct hone_output {
  void* data;
  size_t bytes;
} hone_output;

/* Set options with their _init function first, then change fields. Programs then keep working with
 * later versions that have more options: nothing is written beyond the struct that the program
 * knows. Other languages call the _fill function with the size of their struct in bytes. */
typedef struct hone_model_options {
  size_t struct_bytes; /* how much of it the program knows; set by _init */
  int32_t
      copy_constants; /* 1: copy constants into memory (huge pages where there are any) instead of
                         mapping the file: slower to open, large matrix products 1 to 2 % faster,
                         and the file may change or go afterwards. Default 0: then the file must
                         stay as it is (replacing it by rename is safe) while the model is open. */
  int32_t in_place;   /* 1: hone_model_open_memory uses the memory where it is: it begins at a
                         multiple of 64 bytes and stays as it is while the model and its contexts
                         live. Default 0. */
} hone_model_options;

typedef struct hone_context_options {
  size_t struct_bytes; /* how much of it the program knows; set by _init */
  int32_t threads;     /* including the one that calls run; default 0: as many as any kernel of the
                          package may use, but no more than the physical cores this process may
                          use: those of its affinity mask, performance cores alone where there are
                          efficiency cores too, within the CPU quota of its control group, rounded
                          up; the environment variable HONE_THREADS sets another default; more
                          than CPUs make runs slower */
  int32_t pin; /* 1: bind each worker thread to a core of its own (all but the first allowed core,
                  which is meant for the caller of run). Such threads are the context's own. Default
                  0. */
  int32_t profile;     /* 1: take the time of each step, see hone_context_step. Default 0. */
  int32_t poison;      /* 1: before each run fill intermediate memory and outputs with 0xff, so that
                          reads of unwritten memory show; for debugging, slow. Default 0. */
  int32_t own_threads; /* 1: the context starts threads of its own; default 0: it shares those of
                          the process, which the first context that wants any starts */
  int32_t spin_us; /* microseconds for which a thread without work spins at most before it sleeps;
                      0: sleep at once. Default -1: 50, or 3 where the control group grants fewer
                      CPUs than `threads`, or what the environment variable HONE_SPIN_US says.
                      Shared threads follow the context that starts them. */
  /* Not NULL: Hone starts no thread. parallel_for(executor, n, body, context) calls body(context,
   * i) once for each i in [0, n), on any threads and in any order, the calling one included, and
   * returns when all calls have returned; n is at most `threads`. The executor must stay valid
   * while the context lives. Default NULL. */
  void (*parallel_for)(void* executor, int32_t n, void (*body)(void* context, int32_t i),
                       void* context);
  void* executor;
  int32_t node_copies; /* 1: on a machine with several memory nodes (NUMA) each that runs threads
                          gets a copy of the constants, in huge pages where there are any; contexts
                          of a model share them. Takes more memory and avoids reading from other
                          nodes. Default 0; without effect on a machine with one node. */
} hone_context_options;

/* One step of a model: a compiled kernel or a routine of the runtime. */
typedef struct hone_step_info {
  const char* name;      /* kernel: hash of its workload; routine: its name */
  const char* rung;      /* kernel: how its schedule was found: "exact", "nearest", "default", ...;
                            routine: "" */
  const char* record_id; /* kernel: of the tuning log, "" for a default; routine: "" */
  int32_t is_kernel;     /* 1 kernel, 0 routine */
  int64_t time_ns;       /* in the last run, for all images; -1 without `profile` */
} hone_step_info;

/* Version of this library, like "0.1.0". */
HONE_API const char* hone_version(void);

/* Name of a status, like "NOT_FOUND"; never NULL. */
HONE_API const char* hone_status_name(hone_status status);

/* Message of the last failure in the calling thread, "" if there was none. Valid until the next
 * failure in this thread. */
HONE_API const char* hone_last_error(void);

HONE_API void hone_model_options_fill(hone_model_options* options, size_t struct_bytes);
static inline void hone_model_options_init(hone_model_options* options) {
  hone_model_options_fill(options, sizeof(*options));
}

/* Opens a package; everything in it is checked before any of its code is loaded. options may be
 * NULL. End the object with hone_model_close; *model is NULL after a failure. */
HONE_API hone_status hone_model_open(const char* path, const hone_model_options* options,
                                     hone_model** model);

/* The same from memory, which is copied and may be freed afterwards (unless in_place is set). */
HONE_API hone_status hone_model_open_memory(const void* data, size_t bytes,
                                            const hone_model_options* options, hone_model** model);

/* Ends the caller's hold on the model; contexts of it keep what they need. NULL is allowed. */
HONE_API void hone_model_close(hone_model* model);

/* Target the code was made for, like "cpu:avx512,threads=8". */
HONE_API const char* hone_model_target(const hone_model* model);

/* Class of device its tuning records came from; "" when none was used. */
HONE_API const char* hone_model_device_class(const hone_model* model);

HONE_API size_t hone_model_input_count(const hone_model* model);
HONE_API size_t hone_model_output_count(const hone_model* model);

/* Input or output number `index`, in the graph's order; NULL if there is none of this number. */
HONE_API const hone_tensor_info* hone_model_input(const hone_model* model, size_t index);
HONE_API const hone_tensor_info* hone_model_output(const hone_model* model, size_t index);

HONE_API void hone_context_options_fill(hone_context_options* options, size_t struct_bytes);
static inline void hone_context_options_init(hone_context_options* options) {
  hone_context_options_fill(options, sizeof(*options));
}

/* Allocates memory; starts threads where the options ask for it. options may be NULL. End
 * the object with hone_context_destroy; *context is NULL after a failure. */
HONE_API hone_status hone_context_create(hone_model* model, const hone_context_options* options,
                                         hone_context** context);

/* Ends the context and its threads (the shared ones with the last context); not while it runs. NULL
 * is allowed. */
HONE_API void hone_context_destroy(hone_context* context);

/* Threads of a run, including the caller's. */
HONE_API int32_t hone_context_threads(const hone_context* context);

/* Runs the model once and returns when all outputs are written. Buffers are in the order of the
 * model's inputs and outputs; no output may overlap another buffer. Buffers aligned to 64 bytes are
 * used in place, others are copied. A package for a GPU takes device pointers and host pointers,
 * also together; buffers in host memory are copied. Unless hone_context_set_stream was called, the
 * caller must wait until its own writes to device memory are done before it calls run. The results
 * depend neither on the number of threads nor on the caller's rounding mode. After a failure the
 * outputs are undefined. In a child process after fork the first run starts new threads, which
 * contexts share as before; a context that ran at that moment cannot be used there. */
HONE_API hone_status hone_context_run(hone_context* context, const hone_input* inputs,
                                      size_t input_count, const hone_output* outputs,
                                      size_t output_count);

/* For packages of a GPU: from now on runs of this context are ordered in `stream`, a CUstream (or
 * cudaStream_t) of the device's primary context; NULL: in a stream of its own. The stream must live
 * until another is set or the context ends. When all buffers are device pointers, hone_context_run
 * then returns when its work is in the stream, before it is done, unless an input has indices that
 * the host must check. HONE_FAILED_PRECONDITION for packages of the host. */
HONE_API hone_status hone_context_set_stream(hone_context* context, void* stream);

/* Steps of a run, in order. */
HONE_API size_t hone_context_step_count(const hone_context* context);

/* Fills *info for step `index`; HONE_INVALID_ARGUMENT if there is none. Not while the context runs.
 */
HONE_API hone_status hone_context_step(const hone_context* context, size_t index,
                                       hone_step_info* info);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HONE_HONE_H_ */
