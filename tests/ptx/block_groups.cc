#include <algorithm>
#include <bit>

#include "fmt/core.h"

#include "tests/ptx/arith.h"
#include "tests/ptx/block.h"
#include "tests/ptx/groups.h"

// wgmma: what a warpgroup begins when all of its threads have come there, and what its threads wait
// for. A product is made when it is begun or when the first of them waits for it, by seed. In
// between nobody may touch the sums or write to the factors.
namespace hone::ptx {

namespace {

constexpr int kGroupRows = 64, kGroupTerms = 16, kWarpRows = 16;
constexpr uint64_t kNumberBytes = 2;

}  // namespace

void Block::RunGroups(const Instruction& in, std::span<Thread> threads) {
  const std::string& what = in.parts[0];
  if (what == "mma_async") return BeginProduct(in, threads);
  for (Thread& t : threads) {
    if (what == "fence") {
      t.group_fenced = true;
      std::ranges::fill(t.unfenced, 0);
    } else if (what == "commit_group") {
      for (Thread::Product& product : t.products) {
        if (product.group < 0) product.group = t.product_groups;
      }
      ++t.product_groups;
    } else {
      AwaitProducts(t, t.product_groups - static_cast<int64_t>(in.operands[0].bits));
    }
  }
}

/// The bytes that a warp of the group reads: its own rows of A, all columns of B.
void Block::ForBytesOf(const GroupProduct& product, size_t warp,
                       const std::function<void(uint64_t)>& visit) const {
  const auto numbers = [&](const GroupDescriptor& from, int first, int count, bool across) {
    for (int i = first; i < first + count; ++i) {
      for (int k = 0; k < kGroupTerms; ++k) {
        const uint64_t at = from.AddressOf(i, k, across);
        for (uint64_t byte = 0; byte < kNumberBytes; ++byte) visit(at + byte);
      }
    }
  };
  numbers(product.a, static_cast<int>(warp) * kWarpRows, kWarpRows, product.a_across);
  numbers(product.b, 0, product.columns, product.b_across);
}

void Block::BeginProduct(const Instruction& in, std::span<Thread> group) {
  const GroupForm form = GroupFormOf(in);
  auto product = std::make_shared<GroupProduct>();
  product->columns = form.columns;
  product->bf16 = form.bf16;
  product->a_across = in.operands[6].bits != 0;
  product->b_across = in.operands[7].bits != 0;
  product->first_thread = static_cast<size_t>(group[0].number);
  for (const Operand& part : in.operands[0].parts) product->sums.push_back(part.reg);
  std::string why;
  for (size_t k = 0; k < 3; ++k) {
    const Type type = k == 2 ? Type{'p', 1} : Type{'b', 64};
    const uint64_t first = Source(group[0], in.operands[k + 1], type);
    for (const Thread& t : group) {
      if (Source(t, in.operands[k + 1], type) != first)
        return Fail(t, "threads of the warpgroup give different operands");
    }
    if (k == 2) {
      product->adds = first != 0;
      continue;
    }
    const auto descriptor = GroupDescriptor::Of(first, &why);
    if (!descriptor) return Fail(group[0], why);
    (k == 0 ? product->a : product->b) = *descriptor;
  }
  if (!error_.empty()) return;
  for (Thread& t : group) {
    TakeSums(t, *product);
    if (!error_.empty()) return;
  }
  for (size_t warp = 0; warp < group.size() / kWarpSize; ++warp) {
    Thread& reader = group[warp * kWarpSize];
    ForBytesOf(*product, warp, [&](uint64_t at) { BeginRead(reader, at); });
    if (!error_.empty()) return;
  }
  products_.push_back(product);
  for (Thread& t : group) t.products.push_back({product, -1});
  if (random_.Below(2) == 0) LandProducts(*product);
}

/// The sums of a thread are the product's until the thread has waited for it.
void Block::TakeSums(Thread& t, const GroupProduct& product) {
  if (!t.group_fenced) return Fail(t, "no wgmma.fence came before it");
  for (const int sum : product.sums) {
    const auto at = static_cast<size_t>(sum);
    if (std::ranges::count(product.sums, sum) > 1) return Fail(t, "a register is two sums");
    if (t.unfenced[at] != 0)
      return Fail(t, "a register of its sums was touched since the last wgmma.fence");
    if (product.adds && t.set[at] == 0) return Fail(t, "it adds to a register that holds nothing");
    if (t.awaited[at] == 0) continue;
    // Accumulators of products of the same shape follow each other by themselves.
    const auto of_another = [&](const Thread::Product& other) {
      return std::ranges::count(other.product->sums, sum) > 0 &&
             other.product->sums != product.sums;
    };
    if (std::ranges::any_of(t.products, of_another))
      return Fail(t, "another wgmma that nobody waited for has some of its sums");
  }
  for (const int sum : product.sums) {
    ++t.awaited[static_cast<size_t>(sum)];
    t.set[static_cast<size_t>(sum)] = 1;
  }
}

/// A read through the asynchronous proxy that may come at any time from now on.
void Block::BeginRead(Thread& reader, uint64_t at) {
  const std::optional<Place> place = Find(reader, Space::kShared, at);
  if (!place) return Fail(reader, fmt::format("address {:#x} is not in shared memory", at));
  Shadow& shadow = place->memory->shadow[place->offset];
  if (shadow.pending) return Fail(reader, "a copy that nobody waited for may write there");
  if (!shadow.set) return Fail(reader, "it reads memory that nothing was written to");
  if (!HasSeen(reader, shadow)) return Fail(reader, "it has not waited for the copy to there");
  TouchByte(reader, &shadow, false);
  ++shadow.readers;
  if (!IsShown(shadow, reader))
    Fail(reader, "what a thread wrote there is not shown by fence.proxy.async");
}

bool Block::IsShown(const Shadow& shadow, const Thread& t) const {
  if (shadow.unshown < 0) return true;
  const Thread& writer = threads_[static_cast<size_t>(shadow.write.thread)];
  const auto fence = static_cast<size_t>(shadow.unshown);
  return fence < writer.proxy_fences.size() &&
         (writer.proxy_fences[fence] < epoch_ || writer.number == t.number);
}

/// Those begun before come first.
void Block::LandProducts(const GroupProduct& last) {
  for (const std::shared_ptr<GroupProduct>& product : products_) {
    if (product->first_thread == last.first_thread && !product->landed) Multiply(product.get());
    if (product.get() == &last) break;
  }
}

void Block::Multiply(GroupProduct* product) {
  product->landed = true;
  const auto numbers = [&](const GroupDescriptor& from, int count, bool across) {
    std::vector<double> all;
    for (int i = 0; i < count; ++i) {
      for (int k = 0; k < kGroupTerms; ++k) {
        const std::optional<Place> at =
            Find(threads_[product->first_thread], Space::kShared, from.AddressOf(i, k, across));
        const auto bits =
            static_cast<uint16_t>(at->memory->bytes[at->offset] |
                                  static_cast<uint32_t>(at->memory->bytes[at->offset + 1]) << 8);
        all.push_back(static_cast<double>(NumberOfHalf(product->bf16, bits)));
      }
    }
    return all;
  };
  const std::vector<double> a = numbers(product->a, kGroupRows, product->a_across);
  const std::vector<double> b = numbers(product->b, product->columns, product->b_across);
  for (size_t thread = 0; thread < kGroupSize; ++thread) {
    Thread& t = threads_[product->first_thread + thread];
    for (size_t number = 0; number < product->sums.size(); ++number) {
      uint64_t& bits = t.registers[static_cast<size_t>(product->sums[number])];
      double sum = product->adds
                       ? static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)))
                       : 0;
      const GroupPlace at = PlaceOfSum(thread, number);
      for (int k = 0; k < kGroupTerms; ++k)
        sum += a[static_cast<size_t>(at.row * kGroupTerms + k)] *
               b[static_cast<size_t>(at.column * kGroupTerms + k)];
      bits = std::bit_cast<uint32_t>(static_cast<float>(sum));
    }
  }
}

void Block::AwaitProducts(Thread& t, int64_t groups) {
  for (const Thread::Product& own : t.products) {
    if (own.group < 0 || own.group >= groups) continue;
    GroupProduct& product = *own.product;
    if (!product.landed) LandProducts(product);
    for (const int sum : product.sums) --t.awaited[static_cast<size_t>(sum)];
    const size_t lane = (static_cast<size_t>(t.number) - product.first_thread) % kWarpSize;
    if (lane != 0) continue;
    // What its warp has read may be written by others after the next barrier.
    const size_t warp = (static_cast<size_t>(t.number) - product.first_thread) / kWarpSize;
    ForBytesOf(product, warp, [&](uint64_t at) {
      const std::optional<Place> place = Find(t, Space::kShared, at);
      Shadow& shadow = place->memory->shadow[place->offset];
      TouchByte(t, &shadow, false);
      --shadow.readers;
    });
    ++product.warps_done;
  }
  std::erase_if(t.products,
                [&](const Thread::Product& p) { return p.group >= 0 && p.group < groups; });
  std::erase_if(products_, [](const auto& p) { return p->warps_done == kGroupSize / kWarpSize; });
}

}  // namespace hone::ptx
