#include "compiler/concat_placement.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "measure/build_job.h"

namespace hone::compiler {
namespace {

using graph::ValueId;

class ConcatPlacer {
 public:
  explicit ConcatPlacer(ModelSteps& model) : model_(model) {
    const size_t values = model.graph.values.size();
    writer_.resize(values, -1);
    in_one_piece_.resize(values, 0);
    for (size_t s = 0; s < model.steps.size(); ++s) {
      const ModelStep& step = model.steps[s];
      for (const ValueId v : step.outputs) writer_[v] = static_cast<int>(s);
      if (step.kind != ir::PlanStepKind::kExtern) continue;
      for (const ValueId v : step.inputs) in_one_piece_[v] = 1;
      for (const ValueId v : step.outputs) in_one_piece_[v] = 1;
    }
    for (const ValueAlias& alias : model.aliases) {
      if (alias.of != graph::kNoValue) in_one_piece_[alias.of] = 1;
    }
    for (size_t v = 0; v < values; ++v) {
      if (model.output_of[v] >= 0) in_one_piece_[v] = 1;
    }
  }

  // Operands that are the operands of an earlier Concat, in order, become that Concat.
  void UsePrefixes() {
    std::vector<const ModelStep*> concats;
    std::vector<std::vector<ValueId>> shortened(model_.steps.size());
    for (size_t s = 0; s < model_.steps.size(); ++s) {
      const ModelStep& step = model_.steps[s];
      if (step.concat_axis < 0) continue;
      shortened[s] = step.concat_operands;
      const ModelStep* longest = nullptr;
      for (const ModelStep* earlier : concats) {
        if (!IsPrefix(*earlier, step)) continue;
        if (longest == nullptr ||
            longest->concat_operands.size() < earlier->concat_operands.size()) {
          longest = earlier;
        }
      }
      concats.push_back(&step);
      if (longest == nullptr) continue;
      const auto rest = step.concat_operands.begin() +
                        static_cast<std::ptrdiff_t>(longest->concat_operands.size());
      shortened[s].assign(rest, step.concat_operands.end());
      shortened[s].insert(shortened[s].begin(), longest->outputs.front());
    }
    for (size_t s = 0; s < model_.steps.size(); ++s) {
      if (model_.steps[s].concat_axis >= 0) model_.steps[s].concat_operands = shortened[s];
    }
  }

  // From the last to the first, so that a Concat of Concats owns the memory.
  void Place() {
    std::vector<std::vector<ModelStep>> instead(model_.steps.size());
    std::vector<char> replaced(model_.steps.size(), 0);
    for (size_t s = model_.steps.size(); s-- > 0;) {
      if (model_.steps[s].concat_axis < 0) continue;
      replaced[s] = PlaceOne(model_.steps[s], instead[s]) ? 1 : 0;
    }
    std::vector<ModelStep> steps;
    for (size_t s = 0; s < model_.steps.size(); ++s) {
      if (replaced[s] == 0) steps.push_back(std::move(model_.steps[s]));
      for (ModelStep& copy : instead[s]) steps.push_back(std::move(copy));
    }
    model_.steps = std::move(steps);
  }

  // Kernels by Workload and Binding, in the order of their first use.
  void Rebind() {
    std::vector<ModelKernel> kernels;
    std::map<std::pair<int, std::string>, int> known;
    for (ModelStep& step : model_.steps) {
      if (step.kind != ir::PlanStepKind::kKernel) continue;
      schedule::Binding binding = BindingOf(model_, step);
      const auto [found, fresh] = known.try_emplace({step.kernel, measure::BindingText(binding)},
                                                    static_cast<int>(kernels.size()));
      if (fresh) {
        ModelKernel& kernel = kernels.emplace_back(model_.kernels[step.kernel]);
        kernel.binding = std::move(binding);
        kernel.count = 0;
      }
      step.kernel = found->second;
      ++kernels[step.kernel].count;
    }
    model_.kernels = std::move(kernels);
  }

 private:
  static bool IsPrefix(const ModelStep& shorter, const ModelStep& longer) {
    const std::vector<ValueId>& a = shorter.concat_operands;
    const std::vector<ValueId>& b = longer.concat_operands;
    return shorter.concat_axis == longer.concat_axis && a.size() > 1 && a.size() < b.size() &&
           std::equal(a.begin(), a.end(), b.begin());
  }

  bool CanMove(ValueId value) const {
    if (writer_[value] < 0 || in_one_piece_[value] != 0) return false;
    if (model_.aliases[value].of != graph::kNoValue) return false;  // it already lies elsewhere
    const ModelStep& step = model_.steps[writer_[value]];
    const ir::Workload& workload = model_.kernels[step.kernel].workload;
    const auto at = std::find(step.outputs.begin(), step.outputs.end(), value);
    const int tensor = workload.Outputs()[static_cast<size_t>(at - step.outputs.begin())];
    // What a scan carries, and two results of one Stage, want one layout.
    const ir::Stage& stage = workload.stages[workload.Producer(tensor)];
    return stage.scan < 0 && stage.results.size() == 1;
  }

  bool PlaceOne(const ModelStep& concat, std::vector<ModelStep>& copies) {
    const std::vector<ValueId>& operands = concat.concat_operands;
    if (std::none_of(operands.begin(), operands.end(), [&](ValueId v) { return CanMove(v); })) {
      return false;
    }
    int64_t start = 0;
    for (const ValueId operand : operands) {
      const graph::TensorType type = model_.graph.values[operand].type;
      const int64_t extent = type.shape[static_cast<size_t>(concat.concat_axis)];
      if (type.NumElements() > 0) {
        ValueId part = operand;
        if (!CanMove(operand)) {
          copies.push_back(CopyStep(operand));
          part = copies.back().outputs.front();
        }
        model_.aliases[part] = {
            .of = concat.outputs.front(), .concat_axis = concat.concat_axis, .concat_start = start};
      }
      start += extent;
    }
    return true;
  }

  ModelStep CopyStep(ValueId value) {
    ModelStep step;
    step.kernel = static_cast<int>(model_.kernels.size());
    model_.kernels.push_back(MakeKernel(CopyWorkload(model_.graph.values[value]), "copy"));
    for (size_t k = 0; k + 1 < model_.kernels.size(); ++k) {
      if (model_.kernels[k].text != model_.kernels.back().text) continue;
      model_.kernels.pop_back();
      step.kernel = static_cast<int>(k);
      break;
    }
    const bool known = model_.graph.values[value].constant != nullptr;
    (known ? step.constants : step.inputs) = {value};
    step.outputs = {AddValueLike(model_, value)};
    return step;
  }

  ModelSteps& model_;
  std::vector<int> writer_;         // by value: step, or -1
  std::vector<char> in_one_piece_;  // by value: somebody needs it dense
};

}  // namespace

void PlaceConcats(ModelSteps& model) {
  ConcatPlacer placer(model);
  placer.UsePrefixes();
  placer.Place();
  placer.Rebind();
}

}  // namespace hone::compiler
