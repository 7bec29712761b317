#include <algorithm>
#include <set>

#include "schedule/nest_builder.h"

// Which Stages take part, and in which order.
namespace hone::schedule {

bool Loads(const ir::Stage& reader, const ir::Stage& producer) {
  bool found = false;
  for (const auto& body : reader.body) {
    ir::Visit(body, [&](const ir::ExprNode& e) {
      if (e.kind != ir::ExprKind::kLoad) return;
      for (int r : producer.results) found |= e.id == r;
    });
  }
  return found;
}

bool IsCarriedLoad(const ir::Workload& workload, int scan, const ir::ExprNode& load) {
  const int producer = workload.Producer(load.id);
  if (producer < 0 || workload.stages[producer].scan != scan) return false;
  const ir::Expr& t = load.args[0];
  return t->kind != ir::ExprKind::kVar || t->id != 0;
}

namespace {

class Order {
 public:
  explicit Order(const ir::Workload& workload) : w_(workload) {}

  void Mark(int stage) {
    if (!live_.insert(stage).second) return;
    for (int p : Producers(stage)) Mark(p);
  }
  std::vector<int> Sorted() {
    for (int stage : live_) Visit(stage);
    return std::move(out_);
  }

 private:
  std::vector<int> Producers(int stage) const {
    std::vector<int> producers;
    for (const auto& body : w_.stages[stage].body) {
      ir::Visit(body, [&](const ir::ExprNode& e) {
        int p = e.kind == ir::ExprKind::kLoad ? w_.Producer(e.id) : -1;
        if (p >= 0) producers.push_back(p);
      });
    }
    return producers;
  }
  /// A scan counts as one: first what its Stages read from outside, then they, in the order of the
  /// Workload, but each after those of which it reads the same iteration.
  void Visit(int stage) {
    if (!seen_.insert(stage).second) return;
    const int scan = w_.stages[stage].scan;
    std::vector<int> together = {stage};
    if (scan >= 0) {
      together.clear();
      for (int other : live_) {
        if (w_.stages[other].scan == scan) together.push_back(other);
      }
    }
    for (int member : together) seen_.insert(member);
    for (int member : together) {
      for (int p : Producers(member)) Visit(p);
    }
    std::set<int> placed;
    for (int member : together) PlaceInScan(member, &placed);
  }
  void PlaceInScan(int stage, std::set<int>* placed) {
    if (!placed->insert(stage).second) return;
    const int scan = w_.stages[stage].scan;
    for (const auto& body : w_.stages[stage].body) {
      ir::Visit(body, [&](const ir::ExprNode& e) {
        const int p = e.kind == ir::ExprKind::kLoad ? w_.Producer(e.id) : -1;
        const bool now = scan >= 0 && p >= 0 && w_.stages[p].scan == scan;
        if (now && !IsCarriedLoad(w_, scan, e)) PlaceInScan(p, placed);
      });
    }
    out_.push_back(stage);
  }

  const ir::Workload& w_;
  std::set<int> live_, seen_;
  std::vector<int> out_;
};

}  // namespace

std::vector<int> LiveStages(const Schedule& schedule) {
  Order order(schedule.workload);
  for (size_t i = 0; i < schedule.workload.stages.size(); ++i) {
    for (int r : schedule.workload.stages[i].results) {
      if (schedule.workload.tensors[r].output) order.Mark(static_cast<int>(i));
    }
  }
  return order.Sorted();
}

}  // namespace hone::schedule
