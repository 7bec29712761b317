#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "runtime/context.h"
#include "runtime/executable.h"
#include "runtime/package.h"
#include "tests/runtime/test_model.h"

// One file with code for several targets, of which the loader takes one.
namespace hone::runtime::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kNarrow[] = "cpu:avx2,threads=1", kWide[] = "cpu:avx512,threads=1";

Package For(const TestModel& model, const std::string& target) {
  Package package = model.package;
  package.info.target = target;
  std::string why;
  EXPECT_TRUE(ir::ParseTarget(target, &package.target, &why)) << why;
  for (ir::Artifact& kernel : package.plan.kernels) kernel.target = kNarrow;
  return package;
}

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

bool Any(const ir::Target&, std::string*) { return true; }
bool None(const ir::Target& target, std::string* why) {
  *why = "no " + target.text;
  return false;
}
bool Narrow(const ir::Target& target, std::string* why) {
  return target.text == kNarrow || None(target, why);
}

TEST(PackageVariants, ComeBackAsTheyWere) {
  const TestModel model = MakeTestModel();
  const auto bytes = SerializePackages({For(model, kNarrow), For(model, kWide)});
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto read = ParsePackages(Bytes(*bytes));
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ((*read)[1].info.target, kWide);
  EXPECT_EQ((*read)[0].constants.data(), (*read)[1].constants.data());
  EXPECT_EQ(*SerializePackages(*read), *bytes);
  EXPECT_THAT(ParsePackage(Bytes(*bytes)).status().message(), HasSubstr("for 2 targets"));
  uint32_t format = 0;
  std::memcpy(&format, bytes->data() + 8, 4);
  EXPECT_EQ(format, 7U);
  // Constants are there once.
  EXPECT_LT(bytes->size(), 2 * SerializePackage(For(model, kNarrow))->size());
}

TEST(PackageVariants, TheBestThatTheHostRunsIsTaken) {
  const TestModel model = MakeTestModel();
  const Variants variants = {For(model, kNarrow), For(model, kWide)};
  EXPECT_EQ(*ChooseVariant(variants, 1, Any), 1U);
  EXPECT_EQ(*ChooseVariant(variants, 1, Narrow), 0U);
  const auto none = ChooseVariant(variants, 1, None);
  EXPECT_EQ(none.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(none.status().message(), "no cpu:avx2,threads=1; no cpu:avx512,threads=1");
  // More threads than there are cores are no gain.
  const Variants both = {For(model, "cpu:avx512,threads=6"), For(model, kNarrow)};
  EXPECT_EQ(*ChooseVariant(both, 5, Any), 1U);
  EXPECT_EQ(*ChooseVariant(both, 6, Any), 0U);
  EXPECT_EQ(*ChooseVariant({both[0]}, 5, Any), 0U);
}

TEST(PackageVariants, TheLoaderSaysWhichItRunsAndItComputes) {
  TestModel model = MakeTestModel();
  // The narrow one's constants stand behind what only the other needs.
  constexpr size_t kBefore = 3 * 4096 / sizeof(float);
  std::vector<float> all(kBefore, 7);
  all.insert(all.end(), model.constants.begin(), model.constants.end());
  model.constants = all;
  model.package.constants = std::as_bytes(std::span(model.constants));
  for (ir::PlanBuffer& buffer : model.package.plan.buffers) {
    if (buffer.kind == ir::PlanBufferKind::kConstant) buffer.offset += 3 * 4096;
  }
  const auto bytes = SerializePackages({For(model, kWide), For(model, kNarrow)});
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto executable = Executable::OpenMemory(Bytes(*bytes), {.host_can_run = Narrow});
  ASSERT_TRUE(executable.ok()) << executable.status().message();
  EXPECT_EQ((*executable)->info().target, kNarrow);
  EXPECT_THAT((*executable)->targets(), ElementsAre(kWide, kNarrow));
  EXPECT_LT((*executable)->constants().size(), 4096U) << "not those before its own";
  auto context = Context::Create(*executable, {.threads = 1});
  ASSERT_TRUE(context.ok()) << context.status().message();
  const TestInputs inputs = MakeInputs(3);
  TestOutputs outputs = EmptyOutputs();
  TestBuffers<InputBuffer, OutputBuffer> buffers(inputs, outputs);
  const Status ran = (*context)->Run(buffers.in, buffers.out);
  ASSERT_TRUE(ran.ok()) << ran.message();
  EXPECT_EQ(outputs, Expected(inputs));
}

TEST(PackageVariants, MustBeOfOneModel) {
  const TestModel model = MakeTestModel(), copy = MakeTestModel();
  const auto refused = [](const Variants& variants) {
    return SerializePackages(variants).status().message();
  };
  EXPECT_THAT(refused({}), HasSubstr("for 0 targets"));
  EXPECT_THAT(refused({For(model, kNarrow), For(model, kNarrow)}), HasSubstr("two packages for"));
  EXPECT_THAT(refused({For(model, kNarrow), For(copy, kWide)}),
              HasSubstr("do not share their constants"));
  Package other = For(model, kWide);
  other.plan.inputs[0].name = "another";
  EXPECT_THAT(refused({For(model, kNarrow), other}), HasSubstr("other inputs or outputs"));
}

}  // namespace
}  // namespace hone::runtime::testing
