#include "tests/codegen/reference_nest.h"

#include "gtest/gtest.h"

#include "ir/combiner.h"
#include "ir/evaluate.h"

namespace hone::codegen {
namespace {

using ir::Combiner;
using ir::Expr;
using ir::LoopKind;
using ir::Scope;
using ir::StmtKind;
using ir::StmtNode;
using ir::Value;

class Reference : public ir::ExprEvaluator {
 public:
  Reference(const ir::LoopNest& nest, const std::vector<uint8_t*>& arguments, int64_t begin, int64_t end, int64_t step)
      : nest_(nest),
        arguments_(arguments),
        begin_(begin),
        end_(end),
        step_(step),
        vars_(static_cast<size_t>(nest.num_vars)),
        local_(nest.buffers.size()) {
    for (size_t i = 0; i < nest.buffers.size(); ++i) {
      local_[i].resize(static_cast<size_t>(nest.buffers[i].elements * ir::SizeOf(nest.buffers[i].dtype)));
    }
  }

  void Run(const StmtNode& s) {
    switch (s.kind) {
      case StmtKind::kBlock: RunBody(s); return;
      case StmtKind::kFor: RunFor(s); return;
      case StmtKind::kIf:
        if (Evaluate(*s.condition, vars_).i != 0) RunBody(s);
        return;
      case StmtKind::kFill:
        for (int64_t i = 0; i < s.extent; ++i) Write(s.buffers[0], i, Evaluate(*s.values[0], vars_));
        return;
      case StmtKind::kStore: RunStore(s); return;
      case StmtKind::kSync: return;
    }
  }

 private:
  void RunBody(const StmtNode& s) {
    for (const ir::Stmt& inner : s.body) Run(*inner);
  }

  void RunFor(const StmtNode& s) {
    int64_t begin = 0;
    int64_t end = s.extent;
    if (s.loop == LoopKind::kParallel) {
      begin = begin_;
      end = end_;
    } else if (s.loop == LoopKind::kStep) {
      begin = step_;
      end = step_ + 1;
    }
    for (int64_t i = begin; i < end; ++i) {
      vars_[static_cast<size_t>(s.var)] = i;
      RunBody(s);
    }
  }

  void RunStore(const StmtNode& s) {
    const int64_t index = Evaluate(*s.index, vars_).i;
    std::vector<Expr> old;
    std::vector<Expr> values;
    for (size_t k = 0; k < s.buffers.size(); ++k) {
      const ir::DType dtype = nest_.buffers[static_cast<size_t>(s.buffers[k])].dtype;
      values.push_back(AsConst(dtype, Evaluate(*s.values[k], vars_)));
      if (s.combiner != Combiner::kNone) old.push_back(AsConst(dtype, Read(s.buffers[k], index)));
    }
    bool wins = true;
    if (ir::IsArg(s.combiner)) {
      wins = Evaluate(*ir::ArgWins(s.combiner, values[0], values[1], old[0], old[1]), {}).i != 0;
    } else if (s.combiner != Combiner::kNone) {
      for (size_t k = 0; k < values.size(); ++k) values[k] = ir::Combine(s.combiner, old[k], values[k]);
    }
    if (!wins) return;
    for (size_t k = 0; k < values.size(); ++k) Write(s.buffers[k], index, Evaluate(*values[k], {}));
  }

  static Expr AsConst(ir::DType dtype, const Value& value) {
    return ir::IsFloat(dtype) ? ir::Const(dtype, value.f) : ir::ConstInt(dtype, value.i);
  }

  uint8_t* MemoryOf(int id, int64_t index) {
    const ir::Buffer& buffer = nest_.buffers[static_cast<size_t>(id)];
    if (index < 0 || index >= buffer.elements) {
      ADD_FAILURE() << "element " << index << " of " << buffer.name << " which has " << buffer.elements;
      return nullptr;
    }
    return buffer.scope == Scope::kArgument ? arguments_[static_cast<size_t>(buffer.argument)]
                                            : local_[static_cast<size_t>(id)].data();
  }

  Value Read(int id, int64_t index) {
    const ir::Buffer& buffer = nest_.buffers[static_cast<size_t>(id)];
    const uint8_t* memory = MemoryOf(id, index);
    if (memory == nullptr) return {};
    if (buffer.scope == Scope::kTable) {
      return ir::ValueOf(ir::ElementOf(buffer.dtype, buffer.table[static_cast<size_t>(index)]));
    }
    return ir::ValueOf(ir::ReadElement(buffer.dtype, memory, index));
  }

  void Write(int id, int64_t index, const Value& value) {
    uint8_t* memory = MemoryOf(id, index);
    if (memory == nullptr) return;
    ir::WriteElement(nest_.buffers[static_cast<size_t>(id)].dtype, memory, index, ir::ElementOf(value));
  }

  Value LoadFrom(const ir::ExprNode& load, std::span<const int64_t> indices,
                 std::span<const int64_t> /*vars*/) override {
    return Read(load.id, indices[0]);
  }

  const ir::LoopNest& nest_;
  const std::vector<uint8_t*>& arguments_;
  int64_t begin_, end_, step_;
  std::vector<int64_t> vars_;
  std::vector<std::vector<uint8_t>> local_;
};

}  // namespace

void RunReference(const ir::LoopNest& nest, const ir::Phase& phase, const std::vector<uint8_t*>& arguments,
                  int64_t begin, int64_t end, int64_t step) {
  Reference reference(nest, arguments, begin, end, step);
  reference.Run(*phase.body);
  EXPECT_TRUE(reference.status().ok()) << reference.status();
}

}  // namespace hone::codegen
