#include "bench/search/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "base/core/random.h"
#include "base/status.h"
#include "ir/text.h"

namespace hone::bench {
namespace {

std::string ValuesOf(const schedule::Space& space, uint64_t id) {
  const schedule::Candidate c = space.At(id);
  const schedule::Sketch& sketch = space.sketches()[static_cast<size_t>(c.sketch)];
  std::string out = sketch.name;
  for (size_t t = 0; t < sketch.tables.size(); ++t) {
    for (const int64_t value : sketch.tables[t].rows[static_cast<size_t>(c.rows[t])])
      out += fmt::format(" {}", value);
  }
  return out;
}

/// The point with these values: the reverse of ValuesOf.
std::optional<uint64_t> PointOf(const schedule::Space& space, const std::string& values) {
  std::istringstream in(values);
  std::string name;
  in >> name;
  const auto& sketches = space.sketches();
  const auto sketch = std::ranges::find(sketches, name, &schedule::Sketch::name);
  if (sketch == sketches.end()) return std::nullopt;
  schedule::Candidate c{.sketch = static_cast<int>(sketch - sketches.begin()), .rows = {}};
  for (const schedule::DecisionTable& table : sketch->tables) {
    std::vector<int64_t> row(table.columns.size());
    for (int64_t& value : row) {
      if (!(in >> value)) return std::nullopt;
    }
    const auto found = std::ranges::find(table.rows, row);
    if (found == table.rows.end()) return std::nullopt;
    c.rows.push_back(static_cast<int>(found - table.rows.begin()));
  }
  std::string rest;
  if (in >> rest) return std::nullopt;
  const uint64_t id = space.IdOf(c);
  return space.Admits(id) ? std::optional(id) : std::nullopt;
}

}  // namespace

double Pool::BestNs() const {
  double best = 0;
  for (const Row& r : rows) {
    if (r.median_ns > 0 && (best == 0 || r.median_ns < best)) best = r.median_ns;
  }
  return best;
}

absl::Status WritePool(const Pool& pool, const std::string& path) {
  std::ofstream out(path);
  out << "pool 1\nname " << pool.name << "\ntarget " << pool.target << "\ndevice "
      << pool.device_class << "\n"
      << ir::ToText(*pool.workload) << "---\n";
  for (const Pool::Row& r : pool.rows) {
    out << ValuesOf(*pool.space, r.id) << " = "
        << (r.median_ns > 0 ? fmt::format("{:.0f}", r.median_ns) : r.outcome) << "\n";
  }
  out.close();
  return out ? absl::OkStatus() : absl::PermissionDeniedError("cannot write " + path);
}

absl::StatusOr<Pool> ReadPool(const std::string& path) {
  const auto damaged = [&](const std::string& what) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", path, what));
  };
  std::ifstream in(path);
  std::string line, workload;
  if (!std::getline(in, line) || line != "pool 1") return damaged("no pool of version 1");
  Pool pool;
  for (auto [key, value] : {std::pair{"name ", &pool.name},
                            {"target ", &pool.target},
                            {"device ", &pool.device_class}}) {
    if (!std::getline(in, line) || !line.starts_with(key)) return damaged("its head is damaged");
    *value = line.substr(std::string(key).size());
  }
  while (std::getline(in, line) && line != "---") workload += line + "\n";
  HONE_ASSIGN_OR_RETURN(ir::Workload parsed, ir::ParseWorkload(workload));
  ir::Target target;
  std::string why;
  if (!ir::ParseTarget(pool.target, &target, &why)) return damaged(why);
  pool.workload = std::make_shared<const ir::Workload>(std::move(parsed));
  pool.space =
      std::make_shared<const schedule::Space>(*pool.workload, target, ir::AccuracyClass::kDefault);
  while (std::getline(in, line)) {
    const size_t cut = line.find(" = ");
    if (cut == std::string::npos) return damaged("a line without a result: " + line);
    const std::string result = line.substr(cut + 3);
    const std::optional<uint64_t> id = PointOf(*pool.space, line.substr(0, cut));
    if (!id) {
      ++pool.foreign;
      continue;
    }
    const double ns = std::atof(result.c_str());
    pool.rows.push_back({*id, ns, ns > 0 ? "ok" : result});
  }
  return pool;
}

absl::StatusOr<std::vector<Pool>> ReadPools(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".pool") paths.push_back(entry.path().string());
  }
  if (error) return absl::NotFoundError(fmt::format("{}: {}", folder, error.message()));
  std::ranges::sort(paths);
  std::vector<Pool> pools;
  for (const std::string& path : paths) {
    HONE_ASSIGN_OR_RETURN(Pool pool, ReadPool(path));
    pools.push_back(std::move(pool));
  }
  return pools;
}

std::vector<uint64_t> DrawPoints(const schedule::Space& space, size_t most, uint64_t seed) {
  std::vector<uint64_t> points;
  std::set<std::string> traces;
  if (space.product() < most) return points;
  Random random(seed);
  for (size_t draws = 0; points.size() < most && draws < 40 * most; ++draws) {
    const uint64_t id = random.Below(space.product());
    if (!space.Admits(id)) continue;
    const auto trace = space.TraceOf(id);
    if (trace.ok() && traces.insert(schedule::ToText(*trace)).second) points.push_back(id);
  }
  return points;
}

}  // namespace hone::bench
