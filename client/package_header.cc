#include "client/package_header.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "fmt/format.h"

#include "base/versions.h"
#include "client/c_name.h"
#include "client/hone_header_text.h"

namespace hone::client {
namespace {

std::string_view CType(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kBool: return "uint8_t";
    case ir::DType::kI8: return "int8_t";
    case ir::DType::kU8: return "uint8_t";
    case ir::DType::kI16: return "int16_t";
    case ir::DType::kU16: return "uint16_t";
    case ir::DType::kI32: return "int32_t";
    case ir::DType::kU32: return "uint32_t";
    case ir::DType::kI64: return "int64_t";
    case ir::DType::kU64: return "uint64_t";
    case ir::DType::kF16: return "uint16_t";
    case ir::DType::kBF16: return "uint16_t";
    case ir::DType::kF32: return "float";
    case ir::DType::kF64: return "double";
  }
  return "void";
}

/// One C name a value, all different.
std::vector<std::string> FieldNames(const std::vector<ir::PlanValue>& values) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const ir::PlanValue& value : values) {
    std::string name = CFieldName(value.name);
    while (!taken.insert(name).second) name += fmt::format("_{}", names.size());
    names.push_back(name);
  }
  return names;
}

int64_t Elements(const ir::PlanValue& value) {
  int64_t elements = 1;
  for (const int64_t extent : value.shape) elements *= extent;
  return elements;
}

/// A comment cannot end early, whatever the value is called.
std::string InComment(std::string text) {
  std::replace(text.begin(), text.end(), '*', '?');
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, '?');
  return text;
}

std::string ShapeText(const ir::PlanValue& value) {
  return fmt::format("{}[{}]", ir::ToString(value.dtype), fmt::join(value.shape, ","));
}

/// typedef struct { const float* x; … } NAME_inputs;
std::string Structure(const std::string& name, const char* kind,
                      const std::vector<ir::PlanValue>& values) {
  const std::vector<std::string> fields = FieldNames(values);
  std::string text = fmt::format("typedef struct {}_{} {{\n", name, kind);
  const bool input = kind[0] == 'i';
  for (size_t i = 0; i < values.size(); ++i) {
    text += fmt::format("  {}{}* {}; /* {}: {}, {} elements */\n", input ? "const " : "",
                        CType(values[i].dtype), fields[i], InComment(values[i].name),
                        ShapeText(values[i]), Elements(values[i]));
  }
  if (values.empty()) text += "  char unused; /* C has no empty structures */\n";
  return text + fmt::format("}} {}_{};\n", name, kind);
}

/// The statements that fill `hone_input list[]` (or outputs) from the structure.
std::string FillList(const std::string& kind, const std::vector<ir::PlanValue>& values) {
  const std::vector<std::string> fields = FieldNames(values);
  std::string text =
      fmt::format("  hone_{} {}s_[{}];\n", kind, kind, std::max<size_t>(1, values.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    text += fmt::format("  {0}s_[{1}].data = {0}s->{2};\n  {0}s_[{1}].bytes = {3}u;\n", kind, i,
                        fields[i], Elements(values[i]) * ir::SizeOf(values[i].dtype));
  }
  if (values.empty())
    text += fmt::format("  (void){0}s;\n  {0}s_[0].data = 0;\n  {0}s_[0].bytes = 0;\n", kind);
  return text;
}

constexpr char kFunctions[] = R"(
typedef struct {0} {{
  hone_model* model;     /* of which more can be asked: see hone_model_... above */
  hone_context* context; /* hone_context_... */
}} {0};

/* Checks the package and this machine, loads the code, makes memory and threads (0: as many as
 * the package was made for). Not HONE_OK: hone_last_error() says what to do, and nothing is to be
 * closed. */
static inline hone_status {0}_open({0}* self, int32_t threads) {{
  hone_model_options model_options;
  hone_context_options context_options;
  hone_status status;
  self->model = 0;
  self->context = 0;
  hone_model_options_init(&model_options);
  model_options.in_place = 1;
  status = hone_model_open_memory({0}_package, (size_t){0}_package_bytes, &model_options,
                                  &self->model);
  if (status != HONE_OK) return status;
  hone_context_options_init(&context_options);
  context_options.threads = threads;
  status = hone_context_create(self->model, &context_options, &self->context);
  if (status != HONE_OK) {{
    hone_model_close(self->model);
    self->model = 0;
  }}
  return status;
}}

/* One run. Buffers that begin at multiples of 64 bytes are used in place, others are copied. For
 * runs at the same time open the model several times: constants are shared. */
static inline hone_status {0}_run({0}* self, const {0}_inputs* inputs,
                                  const {0}_outputs* outputs) {{
{1}{2}  return hone_context_run(self->context, inputs_, {3}, outputs_, {4});
}}

static inline void {0}_close({0}* self) {{
  hone_context_destroy(self->context);
  hone_model_close(self->model);
  self->context = 0;
  self->model = 0;
}}
)";

}  // namespace

std::string PackageHeader(const HeaderModel& model) {
  std::string guard = model.name;
  for (char& c : guard) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string text = fmt::format(
      "/* {0}, compiled by hone {1} for {2}.\n"
      " * Made by `hone compile --emit so,header`; edit nothing.\n"
      " *\n"
      " *   cc main.c ./{0}.so -Wl,-rpath,'$ORIGIN'           with the runtime inside\n"
      " *   cc main.c {0}.o -lhone_runtime                    with Hone's runtime library\n"
      " */\n"
      "#ifndef HONE_MODEL_{3}_H_\n#define HONE_MODEL_{3}_H_\n\n"
      "/* ---- hone/hone.h, as it is ---- */\n\n{4}\n/* ---- the model {0} ---- */\n\n"
      "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n"
      "/* The package (model.hone), in read-only memory. */\n"
      "extern const unsigned char* const {0}_package;\n"
      "extern const uint64_t {0}_package_bytes;\n\n",
      model.name, kProgramVersion, model.target, guard, kHoneHeaderText);
  text += Structure(model.name, "inputs", model.plan->inputs) + "\n" +
          Structure(model.name, "outputs", model.plan->outputs);
  text += fmt::format(kFunctions, model.name, FillList("input", model.plan->inputs),
                      FillList("output", model.plan->outputs), model.plan->inputs.size(),
                      model.plan->outputs.size());
  return text + fmt::format(
                    "\n#ifdef __cplusplus\n}} /* extern \"C\" */\n#endif\n\n#endif /* "
                    "HONE_MODEL_{}_H_ */\n",
                    guard);
}

}  // namespace hone::client
