#include "ir/loop_interpreter.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ir/async_copy.h"
#include "ir/combiner.h"
#include "ir/evaluate.h"
#include "ir/lanes.h"
#include "ir/loop_arguments.h"
#include "ir/loop_machine.h"
#include "ir/loop_mma.h"
#include "ir/value.h"
#include "ir/wgmma.h"

namespace hone::ir {
namespace {

size_t Index(int64_t i) { return static_cast<size_t>(i); }

bool IsThreadLoop(LoopKind kind) {
  return kind == LoopKind::kThreadX || kind == LoopKind::kThreadY;
}
bool IsBlockLoop(LoopKind kind) {
  return kind == LoopKind::kBlockX || kind == LoopKind::kBlockY || kind == LoopKind::kBlockZ;
}
/// How many neighbours must come to the statement together; 0: it is none of that kind.
int64_t MeetingLanes(const StmtNode& node) {
  const bool mma = node.kind == StmtKind::kFor && node.loop == LoopKind::kMma;
  return mma ? kMmaLanes : LanesOf(node);
}
/// Iterations of these run at the same time, each with registers and scratch of its own.
bool IsConcurrent(LoopKind kind) { return kind == LoopKind::kParallel || IsBlockLoop(kind); }

class LoopNestRunner : public ExprEvaluator {
 public:
  LoopNestRunner(const LoopNest& nest, std::span<const std::span<uint8_t>> arguments,
                 const LoopNestChecks& checks)
      : nest_(nest), checks_(checks) {
    for (size_t k = 0; k < arguments.size(); ++k) {
      bool read_only = false;
      for (const Buffer& buffer : nest.buffers) {
        const bool mine =
            buffer.scope == Scope::kArgument && buffer.argument == static_cast<int>(k);
        read_only |= mine && buffer.read_only;
      }
      arguments_.emplace_back(arguments[k], read_only || !checks.outputs_start_unset);
      if (checks.find_races && !read_only) arguments_.back().EnableRaceChecks();
    }
    for (const Buffer& buffer : nest.buffers) MakeShared(buffer);
  }

  absl::Status Run() {
    std::vector<KernelStep> steps = nest_.steps;
    if (steps.empty()) steps = {{0, static_cast<int>(nest_.phases.size()), 1}};
    for (const KernelStep& step : steps) {
      for (int64_t repeat = 0; repeat < step.repeats && !failed(); ++repeat) {
        for (int p = step.first; p < step.first + step.count && !failed(); ++p) {
          if (p < 0 || Index(p) >= nest_.phases.size()) {
            FailWith(absl::InternalError("step of phase " + std::to_string(p) +
                                         ", which does not exist"));
            break;
          }
          RunPhase(p, repeat);
        }
      }
    }
    return status();
  }

 protected:
  Value LoadFrom(const ExprNode& load, std::span<const int64_t> indices,
                 std::span<const int64_t> /*vars*/) override {
    if (indices.size() != 1) {
      Wrong("a load of a loop nest has one flat index");
      return {};
    }
    return ValueOf(ReadAt(load.id, indices[0]));
  }

 private:
  /// Tables and shared memory; other scopes get an empty place.
  void MakeShared(const Buffer& buffer) {
    const bool wanted = buffer.scope == Scope::kTable || buffer.scope == Scope::kShared;
    common_.emplace_back(wanted ? buffer.elements * SizeOf(buffer.dtype) : 0);
    LoopMemory& memory = common_.back();
    if (buffer.scope == Scope::kShared && checks_.find_races) memory.EnableRaceChecks();
    if (buffer.scope != Scope::kTable) return;
    std::string why;
    for (size_t i = 0; i < buffer.table.size() && i < Index(buffer.elements); ++i) {
      memory.Write(buffer.dtype, 0, static_cast<int64_t>(i),
                   ElementOf(buffer.dtype, buffer.table[i]), {}, &why);
    }
  }

  void RunPhase(int number, int64_t step) {
    phase_ = number;
    step_ = step;
    for (LoopMemory& memory : arguments_) memory.NextEpoch();
    LoopMachine machine = NewMachine();
    machine.Push(*nest_.phases[Index(number)].body);
    Enter(&machine);
    Advance(&machine);
  }

  LoopMachine NewMachine() const {
    LoopMachine machine;
    // An unbound variable puts every index out of range.
    machine.vars.assign(Index(nest_.num_vars), int64_t{1} << 40);
    for (const Buffer& buffer : nest_.buffers) {
      const bool own = buffer.scope == Scope::kRegister;
      machine.registers.emplace_back(own ? buffer.elements * SizeOf(buffer.dtype) : 0);
    }
    machine.scratch = LoopMemory(nest_.phases[Index(phase_)].scratch_bytes);
    return machine;
  }

  /// Runs until the end (true) or a sync (false).
  bool Advance(LoopMachine* machine) {
    while (!machine->frames.empty() && !failed()) {
      machine_ = machine;
      LoopMachine::Frame& frame = machine->frames.back();
      const StmtNode& node = *frame.node;
      if (frame.next < node.body.size()) {
        machine->Push(*node.body[frame.next++]);
        Enter(machine);
        if (machine->waits_at != nullptr) return false;
      } else if (node.kind == StmtKind::kFor && node.loop != LoopKind::kStep &&
                 frame.iteration + 1 < node.extent) {
        frame.next = 0;
        ++frame.iteration;
        BeginIteration(node, frame.iteration, machine);
      } else {
        Leave(machine);
      }
    }
    return true;
  }

  /// Does what the statement on top does at its beginning; simple ones are over after it.
  void Enter(LoopMachine* machine) {
    machine_ = machine;
    const StmtNode& node = *machine->frames.back().node;
    switch (node.kind) {
      case StmtKind::kBlock: return;
      case StmtKind::kFor: EnterLoop(node, machine); return;
      case StmtKind::kIf:
        if (Evaluate(*node.condition, machine->vars).i == 0) machine->frames.pop_back();
        return;
      case StmtKind::kStore: StoreValues(node); break;
      case StmtKind::kFill: FillBuffer(node); break;
      case StmtKind::kPrefetch: break;
      case StmtKind::kSync:
        if (IsCommit(node)) {
          ++machine->groups;
          break;
        }
        if (AwaitedGroups(node) >= 0) {
          LandCopies(machine->groups - AwaitedGroups(node));
          break;
        }
        if (IsOrderOfMachines(node)) break;
        if (!machine->in_block) Wrong("a sync outside of thread loops");
        machine->waits_at = &node;
        break;
      case StmtKind::kFail:
        FailWith(absl::OutOfRangeError("phase " + std::to_string(phase_) + " ends with result " +
                                       std::to_string(node.extent)));
        break;
    }
    machine->frames.pop_back();
  }

  void EnterLoop(const StmtNode& node, LoopMachine* machine) {
    if (Index(node.var) >= machine->vars.size()) {
      Wrong("variable v" + std::to_string(node.var) + " is not below num_vars");
      return;
    }
    if (node.loop == LoopKind::kMma) {
      if (!machine->in_block) Wrong("an mma outside of thread loops");
      machine->waits_at = &node;
      machine->frames.pop_back();
    } else if (IsThreadLoop(node.loop)) {
      if (machine->in_block) {
        Wrong("thread loops must stand directly inside each other");
      } else {
        RunThreads(node, machine);
      }
      machine->frames.pop_back();
    } else if (node.loop == LoopKind::kStep) {
      if (step_ >= node.extent)
        Wrong("step " + std::to_string(step_) + " is not below the loop's extent");
      machine->vars[Index(node.var)] = step_;
    } else if (node.extent == 0) {
      machine->frames.pop_back();
    } else {
      if (IsConcurrent(node.loop) && machine->in_block)
        Wrong("a parallel loop inside of thread loops");
      if (IsConcurrent(node.loop)) machine->EnterConcurrent(node);
      BeginIteration(node, 0, machine);
    }
  }

  void BeginIteration(const StmtNode& node, int64_t iteration, LoopMachine* machine) {
    machine->vars[Index(node.var)] = iteration;
    if (!IsConcurrent(node.loop)) return;
    if (iteration > 0) ++machine->concurrent;
    machine->Unset();
    for (size_t b = 0; b < common_.size(); ++b) {
      if (nest_.buffers[b].scope != Scope::kShared) continue;
      common_[b].Unset();
      common_[b].NextEpoch();
    }
  }

  void Leave(LoopMachine* machine) {
    const StmtNode& node = *machine->frames.back().node;
    if (node.kind == StmtKind::kFor && IsConcurrent(node.loop)) machine->LeaveConcurrent(node);
    machine->frames.pop_back();
  }

  /// The threads of a block: nested thread loops, then one body for all of them.
  void RunThreads(const StmtNode& outer, LoopMachine* block) {
    std::vector<const StmtNode*> loops = {&outer};
    while (loops.back()->body.size() == 1 && loops.back()->body[0]->kind == StmtKind::kFor &&
           IsThreadLoop(loops.back()->body[0]->loop)) {
      loops.push_back(loops.back()->body[0].get());
    }
    const Stmt body = Block(loops.back()->body);
    // A block numbers its threads along x first.
    std::ranges::stable_partition(
        loops, [](const StmtNode* loop) { return loop->loop != LoopKind::kThreadX; });
    int64_t count = 1;
    for (const StmtNode* loop : loops) count *= loop->extent;
    std::vector<LoopMachine> threads;
    for (int64_t t = 0; t < count; ++t) {
      LoopMachine thread = NewMachine();
      thread.vars = block->vars;
      thread.concurrent = block->concurrent;
      thread.thread = static_cast<int>(t);
      thread.in_block = true;
      int64_t rest = t;
      for (size_t k = loops.size(); k-- > 0; rest /= loops[k]->extent) {
        thread.vars[Index(loops[k]->var)] = rest % loops[k]->extent;
      }
      threads.push_back(std::move(thread));
    }
    ++interval_;
    for (LoopMachine& thread : threads) {
      thread.Push(*body);
      Enter(&thread);
    }
    while (!failed() && RunToSync(&threads)) {
    }
    machine_ = block;
    // What follows in the block comes after all of them.
    ++interval_;
  }

  /// Every thread up to its next sync; false when all are at their end.
  bool RunToSync(std::vector<LoopMachine>* threads) {
    do {
      for (LoopMachine& thread : *threads) {
        if (thread.waits_at == nullptr) Advance(&thread);
        if (failed()) return false;
      }
    } while (LanesMeet(*threads));
    if (failed()) return false;
    size_t waiting = 0;
    const StmtNode* place = nullptr;
    for (const LoopMachine& thread : *threads) {
      if (thread.waits_at == nullptr) continue;
      ++waiting;
      if (place != nullptr && place != thread.waits_at) Wrong("threads wait at different syncs");
      place = thread.waits_at;
    }
    if (waiting == 0) return false;
    if (waiting != threads->size()) Wrong("a sync that not all threads of the block reach");
    for (LoopMachine& thread : *threads) thread.waits_at = nullptr;
    ++interval_;
    return true;
  }

  /// Lets the groups of lanes that wait for each other go on. False: no thread waits so, or one of
  /// a group does not come.
  bool LanesMeet(std::span<LoopMachine> threads) {
    bool met = false;
    for (size_t k = 0; k < threads.size(); ++k) {
      const StmtNode* const place = threads[k].waits_at;
      const size_t lanes = place == nullptr ? 0 : Index(MeetingLanes(*place));
      if (lanes == 0) continue;
      machine_ = &threads[k];
      const size_t first = k / lanes * lanes;
      const auto group = threads.subspan(first, std::min(lanes, threads.size() - first));
      const bool whole =
          group.size() == lanes &&
          std::ranges::all_of(group, [&](const LoopMachine& m) { return m.waits_at == place; });
      if (!whole) {
        Wrong("lanes of a group that do not all come to it");
        return false;
      }
      place->kind == StmtKind::kFor ? MultiplyGroup(*place, group) : CombineGroup(*place, group);
      if (failed()) return false;
      for (LoopMachine& lane : group) lane.waits_at = nullptr;
      met = true;
    }
    return met;
  }

  void CombineGroup(const StmtNode& node, std::span<LoopMachine> group) {
    const int buffer = node.buffers[0];
    if (nest_.buffers[Index(buffer)].scope != Scope::kRegister) {
      Wrong("lanes combine what is not in registers");
      return;
    }
    const DType dtype = nest_.buffers[Index(buffer)].dtype;
    std::vector<int64_t> indices;
    std::vector<Value> values;
    for (LoopMachine& lane : group) {
      machine_ = &lane;
      indices.push_back(EvaluateIndex(*node.index, lane.vars));
      values.push_back(ValueOf(ReadAt(buffer, indices.back())));
    }
    // In pairs far apart, then nearer, as the machine does.
    for (size_t apart = group.size() / 2; apart > 0; apart /= 2) {
      const std::vector<Value> before = values;
      for (size_t k = 0; k < values.size(); ++k)
        values[k] = Apply(OperatorOf(node.combiner), dtype, before[k], before[k ^ apart]);
    }
    for (size_t k = 0; k < group.size(); ++k) {
      machine_ = &group[k];
      WriteAt(buffer, indices[k], dtype, values[k]);
    }
  }

  void MultiplyGroup(const StmtNode& node, std::span<LoopMachine> group) {
    const std::optional<MmaLoop> mma = FindMma(node);
    if (!mma) return Wrong("an mma of another form");
    RunMma(
        *mma, group,
        [&](LoopMachine& lane, const LaneElement& at) {
          machine_ = &lane;
          return ValueOf(ReadAt(at.buffer, EvaluateIndex(*at.index, at.vars)));
        },
        [&](LoopMachine& lane, const LaneElement& at, const Value& sum) {
          machine_ = &lane;
          WriteAt(at.buffer, EvaluateIndex(*at.index, at.vars), mma->sum_dtype(), sum);
        });
  }

  void StoreValues(const StmtNode& node) {
    const int64_t index = EvaluateIndex(*node.index, machine_->vars);
    std::vector<Value> values;
    for (const Expr& value : node.values) values.push_back(Evaluate(*value, machine_->vars));
    if (failed()) return;
    if (IsArg(node.combiner)) {
      const ValueAndIndex old = {ValueOf(ReadAt(node.buffers[0], index)),
                                 ValueOf(ReadAt(node.buffers[1], index))};
      const ValueAndIndex made = {values[0], values[1]};
      if (failed() || !ArgReplaces(node.combiner, node.values[0]->dtype, made, old)) return;
    } else if (node.combiner != Combiner::kNone) {
      for (size_t k = 0; k < values.size(); ++k) {
        const DType dtype = node.values[k]->dtype;
        const Value old = ValueOf(ReadAt(node.buffers[k], index));
        values[k] = Apply(OperatorOf(node.combiner), dtype, old, values[k]);
      }
    }
    for (size_t k = 0; k < values.size(); ++k) {
      const DType dtype = node.values[k]->dtype;
      if (IsAsyncStore(node)) {
        machine_->copies.push_back({node.buffers[k], index, dtype, values[k], machine_->groups});
        // It may land at once or late: until it is waited for, there is neither old nor new.
        values[k] = ir::IsFloat(dtype) ? Value{.f = LoopMachine::kOnItsWay} : Value{.i = -1};
      }
      WriteAt(node.buffers[k], index, dtype, values[k]);
    }
  }

  /// This thread's copies of groups below a number land.
  void LandCopies(int64_t groups) {
    std::vector<LoopMachine::Copy>& copies = machine_->copies;
    for (const LoopMachine::Copy& copy : copies) {
      if (copy.group < groups) WriteAt(copy.buffer, copy.index, copy.dtype, copy.value);
    }
    std::erase_if(copies, [&](const LoopMachine::Copy& copy) { return copy.group < groups; });
  }

  void FillBuffer(const StmtNode& node) {
    const Value value = Evaluate(*node.values[0], machine_->vars);
    for (int64_t i = 0; i < node.extent && !failed(); ++i) {
      WriteAt(node.buffers[0], i, node.values[0]->dtype, value);
    }
  }

  /// The memory of a buffer for the running thread and where in it the buffer starts.
  std::pair<LoopMemory*, int64_t> Locate(int id) {
    const Buffer& buffer = nest_.buffers[Index(id)];
    switch (buffer.scope) {
      case Scope::kArgument: return {&arguments_[Index(buffer.argument)], 0};
      case Scope::kScratch: return {&machine_->scratch, buffer.scratch_offset};
      case Scope::kRegister: return {&machine_->registers[Index(id)], 0};
      case Scope::kTable:
      case Scope::kShared: break;
    }
    return {&common_[Index(id)], 0};
  }

  bool CheckAccess(int id, int64_t index) {
    if (id < 0 || Index(id) >= nest_.buffers.size()) {
      Wrong("buffer " + std::to_string(id) + " does not exist");
      return false;
    }
    const Buffer& buffer = nest_.buffers[Index(id)];
    if (index < 0 || index >= buffer.elements) {
      FailWith(absl::OutOfRangeError(Where() + "index " + std::to_string(index) +
                                     " is outside [0, " + std::to_string(buffer.elements) +
                                     ") of " + buffer.name));
      return false;
    }
    const auto [memory, start] = Locate(id);
    if (start < 0 || start + buffer.elements * SizeOf(buffer.dtype) > memory->size()) {
      Wrong("buffer " + buffer.name + " does not fit into its memory of " +
            std::to_string(memory->size()) + " bytes");
      return false;
    }
    return true;
  }

  LoopAgent Agent() const { return {machine_->concurrent, machine_->thread, interval_}; }

  Element ReadAt(int id, int64_t index) {
    if (failed() || !CheckAccess(id, index)) return {};
    const Buffer& buffer = nest_.buffers[Index(id)];
    const auto [memory, start] = Locate(id);
    std::string why;
    const Element element = memory->Read(buffer.dtype, start, index, Agent(), &why);
    if (!why.empty()) Wrong(why + ": element " + std::to_string(index) + " of " + buffer.name);
    return element;
  }

  void WriteAt(int id, int64_t index, DType dtype, const Value& value) {
    if (failed() || !CheckAccess(id, index)) return;
    const Buffer& buffer = nest_.buffers[Index(id)];
    if (buffer.read_only || buffer.scope == Scope::kTable)
      Wrong("writes to " + buffer.name + ", which is read-only");
    if (buffer.dtype != dtype) {
      Wrong("stores " + std::string(ToString(dtype)) + " into " + buffer.name + " of " +
            std::string(ToString(buffer.dtype)));
    }
    const auto [memory, start] = Locate(id);
    std::string why;
    memory->Write(buffer.dtype, start, index, ElementOf(Stored(dtype, value)), Agent(), &why);
    if (!why.empty()) Wrong(why + ": element " + std::to_string(index) + " of " + buffer.name);
  }

  /// Phase, statement and the variables of the loops around it.
  std::string Where() const {
    std::string text = "phase " + std::to_string(phase_);
    if (machine_ == nullptr || machine_->frames.empty()) return text + ": ";
    std::string statement =
        ToText(std::make_shared<StmtNode>(*machine_->frames.back().node), nest_);
    text += ", " + statement.substr(0, statement.find('\n'));
    const char* separator = " with ";
    for (const LoopMachine::Frame& frame : machine_->frames) {
      if (frame.node->kind != StmtKind::kFor || Index(frame.node->var) >= machine_->vars.size())
        continue;
      text += separator + ("v" + std::to_string(frame.node->var)) + "=" +
              std::to_string(machine_->vars[Index(frame.node->var)]);
      separator = ", ";
    }
    if (machine_->in_block) text += ", thread " + std::to_string(machine_->thread);
    return text + ": ";
  }

  void Wrong(const std::string& what) { FailWith(absl::InternalError(Where() + what)); }

  const LoopNest& nest_;
  const LoopNestChecks checks_;
  std::vector<LoopMemory> arguments_;
  std::vector<LoopMemory> common_;  ///< tables and shared memory, by buffer
  LoopMachine* machine_ = nullptr;
  int phase_ = 0;
  int64_t step_ = 0;
  uint32_t interval_ = 0;  ///< of the block that runs, between two barriers
};

}  // namespace

absl::Status RunLoopNest(const LoopNest& nest, std::span<const std::span<uint8_t>> arguments,
                         const LoopNestChecks& checks) {
  HONE_RETURN_IF_ERROR(CheckArguments(nest, arguments));
  return LoopNestRunner(nest, arguments, checks).Run();
}

}  // namespace hone::ir
