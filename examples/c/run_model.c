/* Runs a compiled model once:
 *
 *     run_model model.hone [input0.bin input1.bin ...]
 *
 * Each file holds the raw bytes of one input (row-major, little-endian); inputs without a file are
 * zeros. Prints name, type, shape and the first values of every output. */
#include <hone/hone.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kAlignment = 64, kShown = 8 };

static int Fail(const char* what, const char* why) {
  fprintf(stderr, "run_model: %s: %s\n", what, why);
  return 1;
}

/* Memory that the runtime uses in place: aligned to 64 bytes, zeroed. */
static void* NewBuffer(size_t bytes) {
  const size_t rounded = (bytes / kAlignment + 1) * kAlignment;
  void* data = aligned_alloc(kAlignment, rounded);
  if (data != NULL) memset(data, 0, rounded);
  return data;
}

static int ReadInput(const char* path, void* data, size_t bytes) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) return Fail(path, "cannot be opened");
  const size_t size = fread(data, 1, bytes, file);
  const int whole = size == bytes && fgetc(file) == EOF;
  fclose(file);
  return whole ? 0 : Fail(path, "does not have the size of the input");
}

static void PrintValue(const hone_tensor_info* info, const void* data, size_t i) {
  switch (info->dtype) {
    case HONE_F32: printf(" %g", (double)((const float*)data)[i]); break;
    case HONE_F64: printf(" %g", ((const double*)data)[i]); break;
    case HONE_I32: printf(" %" PRId32, ((const int32_t*)data)[i]); break;
    case HONE_I64: printf(" %" PRId64, ((const int64_t*)data)[i]); break;
    case HONE_BOOL:
    case HONE_U8: printf(" %u", ((const uint8_t*)data)[i]); break;
    case HONE_I8: printf(" %d", ((const int8_t*)data)[i]); break;
    default: printf(" ?"); break;
  }
}

static void PrintTensor(const hone_tensor_info* info, const void* data) {
  size_t count = 1;
  printf("%s [", info->name);
  for (int32_t i = 0; i < info->rank; ++i) {
    printf("%s%" PRId64, i == 0 ? "" : ",", info->shape[i]);
    count *= (size_t)info->shape[i];
  }
  printf("]");
  for (size_t i = 0; i < count && i < kShown; ++i) PrintValue(info, data, i);
  printf("%s\n", count > kShown ? " ..." : "");
}

static int RunModel(hone_context* context, const hone_model* model, int files, char** paths) {
  const size_t num_inputs = hone_model_input_count(model);
  const size_t num_outputs = hone_model_output_count(model);
  hone_input* inputs = calloc(num_inputs + 1, sizeof(*inputs));
  hone_output* outputs = calloc(num_outputs + 1, sizeof(*outputs));
  int result = inputs != NULL && outputs != NULL ? 0 : Fail("buffers", "out of memory");

  for (size_t i = 0; result == 0 && i < num_inputs; ++i) {
    const hone_tensor_info* info = hone_model_input(model, i);
    void* data = NewBuffer(info->bytes);
    inputs[i].data = data;
    inputs[i].bytes = info->bytes;
    if (data == NULL) result = Fail(info->name, "out of memory");
    if (result == 0 && (int)i < files) result = ReadInput(paths[i], data, info->bytes);
  }
  for (size_t i = 0; result == 0 && i < num_outputs; ++i) {
    outputs[i].bytes = hone_model_output(model, i)->bytes;
    outputs[i].data = NewBuffer(outputs[i].bytes);
    if (outputs[i].data == NULL) result = Fail("output", "out of memory");
  }
  if (result == 0 &&
      hone_context_run(context, inputs, num_inputs, outputs, num_outputs) != HONE_OK) {
    result = Fail("run", hone_last_error());
  }
  for (size_t i = 0; result == 0 && i < num_outputs; ++i) {
    PrintTensor(hone_model_output(model, i), outputs[i].data);
  }

  for (size_t i = 0; inputs != NULL && i < num_inputs; ++i) free((void*)inputs[i].data);
  for (size_t i = 0; outputs != NULL && i < num_outputs; ++i) free(outputs[i].data);
  free(inputs);
  free(outputs);
  return result;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: run_model model.hone [input0.bin ...]\n");
    return 2;
  }
  hone_model* model = NULL;
  if (hone_model_open(argv[1], NULL, &model) != HONE_OK) return Fail("open", hone_last_error());
  hone_context* context = NULL;
  int result = 0;
  if (hone_context_create(model, NULL, &context) != HONE_OK) {
    result = Fail("create", hone_last_error());
  } else {
    result = RunModel(context, model, argc - 2, argv + 2);
  }
  hone_context_destroy(context);
  hone_model_close(model);
  return result;
}
