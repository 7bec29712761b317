#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/kept_panels.h"
#include "ir/parse_lexer.h"
#include "ir/text.h"

namespace hone::ir {
namespace {

// The text may come from a log that somebody merged. Everything later walks expressions
// recursively, so their depth is limited here; the other limits bound memory.
constexpr size_t kMaxTextBytes = 4 << 20;
constexpr int kMaxDepth = 400;
constexpr int kMaxNodes = 400'000;
constexpr size_t kMaxList = 4096;

/// i0, r12: the number of an axis; empty for other words.
std::optional<int> AxisNumber(std::string_view word, char letter) {
  if (word.size() < 2 || word.size() > 4 || word[0] != letter) return std::nullopt;
  int number = 0;
  for (char c : word.substr(1)) {
    if (c < '0' || c > '9') return std::nullopt;
    number = 10 * number + (c - '0');
  }
  return number;
}

bool IsReserved(std::string_view word) {
  constexpr std::string_view kWords[] = {"input", "output", "constant", "immediate", "range",
                                         "scan",  "over",   "at",       "true",      "false",
                                         "inf",   "nan",    "select"};
  return std::ranges::find(kWords, word) != std::end(kWords) || AxisNumber(word, 'i').has_value() ||
         AxisNumber(word, 'r').has_value() || ParseDType(word).has_value() ||
         ParseUnaryOp(word).has_value() || ParseBinaryOp(word).has_value() ||
         ParseCombiner(word).has_value();
}

/// Reads expressions of one Stage after another. Nodes are made as they stand, without folding, so
/// that the text of what was read is the text that was read.
class ExprParser {
 public:
  ExprParser(ParseLexer* lexer, const Workload& workload,
             const std::unordered_map<std::string, int>& ids)
      : lexer_(*lexer), workload_(workload), ids_(ids) {}

  void SetAxes(int num_spatial, int num_reduce) {
    num_spatial_ = num_spatial;
    num_reduce_ = num_reduce;
  }

  /// Null after a failure.
  Expr Parse() { return Binary(1, 0).e; }

 private:
  struct Parsed {
    Expr e;
    int depth = 0;
  };

  Parsed Fail(const std::string& what) {
    lexer_.Fail(what);
    return {};
  }

  Parsed Make(ExprNode node, int depth_of_args) {
    if (depth_of_args + 1 > kMaxDepth) return Fail("the expression is nested too deeply");
    if (++num_nodes_ > kMaxNodes) return Fail("the text has too many expressions");
    return {std::make_shared<const ExprNode>(std::move(node)), depth_of_args + 1};
  }

  Parsed Binary(int level, int nesting) {
    Parsed left = Primary(nesting);
    while (left.e != nullptr) {
      const auto sign = lexer_.PeekOperator();
      if (!sign || sign->level < level) break;
      const size_t place = lexer_.position();
      lexer_.Seek(place + sign->length);
      Parsed right = Binary(sign->level + 1, nesting + 1);
      if (right.e == nullptr) return right;
      const bool whole = sign->length == 2;
      if (sign->op == BinaryOp::kDiv && whole == IsFloat(left.e->dtype)) {
        lexer_.Seek(place);
        return Fail("'/' divides floats and '//' integers, this is " +
                    std::string(ToString(left.e->dtype)));
      }
      left = MakeBinary(sign->op, std::move(left), std::move(right), place);
    }
    return left;
  }

  Parsed MakeBinary(BinaryOp op, Parsed a, Parsed b, size_t place) {
    const std::optional<DType> type = ResultType(op, a.e->dtype);
    if (a.e->dtype != b.e->dtype || !type) {
      lexer_.Seek(place);
      return Fail("'" + std::string(ToString(op)) + "' does not take " +
                  std::string(ToString(a.e->dtype)) + " and " + std::string(ToString(b.e->dtype)));
    }
    ExprNode node{.kind = ExprKind::kBinary, .dtype = *type, .op = static_cast<uint8_t>(op)};
    const int depth = std::max(a.depth, b.depth);
    node.args = {std::move(a.e), std::move(b.e)};
    return Make(std::move(node), depth);
  }

  Parsed Primary(int nesting) {
    if (nesting > kMaxDepth) return Fail("the expression is nested too deeply");
    if (lexer_.TryTake("(")) {
      Parsed inner = Binary(1, nesting + 1);
      if (inner.e != nullptr && !lexer_.Expect(")", "after an expression")) return {};
      return inner;
    }
    if (const std::string_view number = lexer_.TryNumber(); !number.empty()) {
      return Number(number);
    }
    const size_t place = lexer_.position();
    const std::string_view word = lexer_.TryIdentifier();
    if (word.empty()) return Fail("expected an expression, found " + lexer_.Found());
    if (word == "true" || word == "false") {
      return Leaf(ConstInt(DType::kBool, word == "true" ? 1 : 0));
    }
    if (lexer_.Peek() == '[') return Load(word, place, nesting);
    if (lexer_.Peek() == '(') return Call(word, place, nesting);
    return Axis(word, place);
  }

  Parsed Leaf(Expr e) {
    if (++num_nodes_ > kMaxNodes) return Fail("the text has too many expressions");
    return {std::move(e), 1};
  }

  Parsed Number(std::string_view number) {
    DType dtype =
        number.find_first_of(".einEa") == std::string_view::npos ? DType::kI64 : DType::kF32;
    if (lexer_.TryTake(":")) {
      const std::string_view name = lexer_.TryIdentifier();
      const std::optional<DType> named = ParseDType(name);
      if (!named || IsBool(*named)) return Fail("expected the type of a number before this");
      dtype = *named;
    }
    std::string why;
    Expr constant = ConstantOf(dtype, number, &why);
    if (constant == nullptr) return Fail(std::string(number.substr(0, 40)) + " " + why);
    return Leaf(std::move(constant));
  }

  Parsed Axis(std::string_view word, size_t place) {
    const std::optional<int> spatial = AxisNumber(word, 'i');
    const std::optional<int> reduce = AxisNumber(word, 'r');
    if (spatial && *spatial < num_spatial_) return Leaf(Var(*spatial));
    if (reduce && *reduce < num_reduce_) return Leaf(Var(num_spatial_ + *reduce));
    lexer_.Seek(place);
    return Fail(spatial || reduce ? "the Stage has no axis " + std::string(word)
                                  : "unknown word " + lexer_.Found());
  }

  /// Expressions up to `close`; the deepest in *depth. False after a failure.
  bool List(std::string_view close, int nesting, std::vector<Expr>* list, int* depth) {
    if (lexer_.TryTake(close)) return true;
    do {
      Parsed item = Binary(1, nesting + 1);
      if (item.e == nullptr) return false;
      *depth = std::max(*depth, item.depth);
      list->push_back(std::move(item.e));
    } while (lexer_.TryTake(","));
    return lexer_.Expect(close, "after a list");
  }

  Parsed Load(std::string_view name, size_t place, int nesting) {
    const auto found = ids_.find(std::string(name));
    if (found == ids_.end()) {
      lexer_.Seek(place);
      return Fail("unknown tensor " + lexer_.Found());
    }
    const Tensor& tensor = workload_.tensors[static_cast<size_t>(found->second)];
    ExprNode node{.kind = ExprKind::kLoad, .dtype = tensor.dtype};
    node.id = found->second;
    int depth = 0;
    lexer_.TryTake("[");
    if (!List("]", nesting, &node.args, &depth)) return {};
    if (node.args.size() != tensor.shape.size()) {
      return Fail(tensor.name + " has rank " + std::to_string(tensor.shape.size()) +
                  " and is loaded with " + std::to_string(node.args.size()) + " indices");
    }
    for (const Expr& index : node.args) {
      if (!IsInteger(index->dtype)) {
        return Fail("an index must be an integer, not " + std::string(ToString(index->dtype)));
      }
    }
    return Make(std::move(node), depth);
  }

  Parsed Call(std::string_view name, size_t place, int nesting) {
    ExprNode node;
    int depth = 0;
    lexer_.TryTake("(");
    if (!List(")", nesting, &node.args, &depth)) return {};
    const std::string why = Resolve(name, &node);
    if (why.empty()) return Make(std::move(node), depth);
    lexer_.Seek(place);
    return Fail("'" + std::string(name) + "' " + why);
  }

  /// Sets kind, op and dtype of a call; the result says what is wrong with it.
  static std::string Resolve(std::string_view name, ExprNode* node) {
    const std::vector<Expr>& args = node->args;
    const auto arguments = [&args](size_t count) { return args.size() == count; };
    if (const std::optional<DType> dtype = ParseDType(name)) {
      if (!arguments(1)) return "takes one argument";
      node->kind = ExprKind::kCast;
      node->dtype = *dtype;
      return "";
    }
    if (name == "select") {
      if (!arguments(3)) return "takes three arguments";
      if (!IsBool(args[0]->dtype) || args[1]->dtype != args[2]->dtype) {
        return "takes a bool and two values of one type";
      }
      node->kind = ExprKind::kSelect;
      node->dtype = args[1]->dtype;
      return "";
    }
    std::optional<DType> type;
    if (const std::optional<UnaryOp> op = ParseUnaryOp(name)) {
      if (!arguments(1)) return "takes one argument";
      node->kind = ExprKind::kUnary;
      node->op = static_cast<uint8_t>(*op);
      type = ResultType(*op, args[0]->dtype);
    } else if (const std::optional<BinaryOp> binary = ParseBinaryOp(name)) {
      if (!arguments(2)) return "takes two arguments";
      if (args[0]->dtype != args[1]->dtype) return "takes two values of one type";
      node->kind = ExprKind::kBinary;
      node->op = static_cast<uint8_t>(*binary);
      type = ResultType(*binary, args[0]->dtype);
    } else {
      return "is no function";
    }
    if (!type) return "does not take " + std::string(ToString(args[0]->dtype));
    node->dtype = *type;
    return "";
  }

  ParseLexer& lexer_;
  const Workload& workload_;
  const std::unordered_map<std::string, int>& ids_;
  int num_spatial_ = 0;
  int num_reduce_ = 0;
  int num_nodes_ = 0;
};

/// Reads all declarations first, because the Stages of a scan load what comes later, then the
/// bodies.
class WorkloadParser {
 public:
  explicit WorkloadParser(std::string_view text) : lexer_(text), expr_(&lexer_, workload_, ids_) {}

  absl::StatusOr<Workload> Parse() {
    if (Header() && Declarations() && Bodies()) return std::move(workload_);
    return lexer_.status();
  }

 private:
  bool Header() {
    while (!lexer_.AtEndOfText() && lexer_.AtEndOfLine()) lexer_.SkipLine();
    if (!lexer_.TryWord("workload"))
      return lexer_.Fail("expected 'workload 1', found " + lexer_.Found());
    const std::optional<int64_t> version = lexer_.Integer("the version of the text");
    if (!version) return false;
    if (*version != 1) {
      return lexer_.Fail("version " + std::to_string(*version) +
                         " of the text is newer than this program");
    }
    return lexer_.ExpectEndOfLine();
  }

  bool Declarations() {
    while (!lexer_.AtEndOfText()) {
      if (lexer_.AtEndOfLine()) {
        lexer_.SkipLine();
      } else if (!Declaration()) {
        return false;
      }
    }
    return true;
  }

  bool Declaration() {
    const int id = DeclareTensor();
    if (id < 0) return false;
    Tensor& tensor = workload_.tensors[static_cast<size_t>(id)];
    if (lexer_.TryWord("input")) return InputRange(&tensor) && lexer_.ExpectEndOfLine();
    if (lexer_.TryWord("constant")) {
      tensor.kind = TensorKind::kConstant;
      if (lexer_.TryWord("panels") && !ParsePanels(lexer_, &tensor)) return false;
      return lexer_.ExpectEndOfLine();
    }
    if (lexer_.TryWord("immediate")) return Immediate(&tensor) && lexer_.ExpectEndOfLine();
    return StageHeader(id);
  }

  int DeclareTensor() {
    const size_t place = lexer_.position();
    const std::string name(lexer_.TryIdentifier());
    if (name.empty()) {
      lexer_.Fail("expected the name of a tensor, found " + lexer_.Found());
      return -1;
    }
    const int id = static_cast<int>(workload_.tensors.size());
    if (IsReserved(name) || !ids_.emplace(name, id).second) {
      lexer_.Seek(place);
      lexer_.Fail("'" + name +
                  (IsReserved(name) ? "' is a word of the language" : "' is declared twice"));
      return -1;
    }
    Tensor tensor{.name = name};
    if (!lexer_.Expect(":", "after a name")) return -1;
    const std::optional<DType> dtype = ParseDType(lexer_.TryIdentifier());
    if (!dtype) {
      lexer_.Fail("expected a type (f32, i64, …) before this");
      return -1;
    }
    tensor.dtype = *dtype;
    if (!lexer_.Expect("[", "before a shape") || !Extents("", &tensor.shape)) return -1;
    workload_.tensors.push_back(std::move(tensor));
    return id;
  }

  /// The rest of [2,3] or, with a letter, of [i0:2,i1:3].
  bool Extents(std::string_view letter, std::vector<int64_t>* extents) {
    if (lexer_.TryTake("]")) return true;
    do {
      if (!letter.empty()) {
        const std::string axis = std::string(letter) + std::to_string(extents->size());
        if (!lexer_.TryWord(axis))
          return lexer_.Fail("expected axis " + axis + ", found " + lexer_.Found());
        if (!lexer_.Expect(":", "after an axis")) return false;
      }
      const std::optional<int64_t> extent = lexer_.Integer("an extent");
      if (!extent) return false;
      if (*extent < 0) return lexer_.Fail("an extent is negative");
      if (extents->size() >= 64) return lexer_.Fail("too many dimensions");
      extents->push_back(*extent);
    } while (lexer_.TryTake(","));
    return lexer_.Expect("]", "after a list of extents");
  }

  bool RangeNumber(double* value) {
    const std::string_view number = lexer_.TryNumber();
    std::string why = "is no number";
    const Expr constant = number.empty() ? nullptr : ConstantOf(DType::kF64, number, &why);
    if (constant == nullptr) return lexer_.Fail("the range's bound " + why);
    *value = constant->float_value;
    return true;
  }

  bool InputRange(Tensor* tensor) {
    tensor->kind = TensorKind::kInput;
    return lexer_.Expect("range", "after 'input'") && lexer_.Expect("(", "after 'range'") &&
           RangeNumber(&tensor->range.low) && lexer_.Expect(",", "between the bounds") &&
           RangeNumber(&tensor->range.high) && lexer_.Expect(")", "after the bounds");
  }

  bool Immediate(Tensor* tensor) {
    constexpr int64_t kExactInDouble = int64_t{1} << 53;
    tensor->kind = TensorKind::kImmediate;
    if (!lexer_.Expect("{", "before the values")) return false;
    while (!lexer_.TryTake("}")) {
      if (!tensor->immediate.empty() && !lexer_.Expect(",", "between values")) return false;
      std::string why = "is no number";
      const std::string_view number = lexer_.TryNumber();
      const Expr constant = number.empty() ? nullptr : ConstantOf(tensor->dtype, number, &why);
      if (constant == nullptr) return lexer_.Fail("the value before this " + why);
      if (tensor->immediate.size() >= kMaxList)
        return lexer_.Fail("an immediate has at most 4096 values");
      const bool is_float = IsFloat(tensor->dtype);
      if (!is_float &&
          (constant->int_value > kExactInDouble || constant->int_value < -kExactInDouble)) {
        return lexer_.Fail("an integer of an immediate is at most 2^53");
      }
      tensor->immediate.push_back(is_float ? constant->float_value
                                           : static_cast<double>(constant->int_value));
    }
    if (static_cast<int64_t>(tensor->immediate.size()) == tensor->NumElements()) return true;
    return lexer_.Fail("the shape has " + std::to_string(tensor->NumElements()) +
                       " elements, but there are " + std::to_string(tensor->immediate.size()) +
                       " values");
  }

  bool StageHeader(int first) {
    Stage stage;
    stage.name = workload_.tensors[static_cast<size_t>(first)].name;
    for (int id = first;; id = DeclareTensor()) {
      if (id < 0) return false;
      Tensor& tensor = workload_.tensors[static_cast<size_t>(id)];
      tensor.kind = TensorKind::kStage;
      tensor.output = lexer_.TryWord("output");
      stage.results.push_back(id);
      if (!lexer_.TryTake(",")) break;
    }
    if (lexer_.TryWord("scan")) {
      const std::optional<int64_t> scan = lexer_.Integer("the number of a scan");
      if (!scan) return false;
      if (*scan < 0 || *scan > 1'000'000)
        return lexer_.Fail("the number of a scan is out of range");
      stage.scan = static_cast<int>(*scan);
    }
    if (!lexer_.TryWord("over")) {
      stage.spatial = workload_.tensors[static_cast<size_t>(first)].shape;
    } else if (!lexer_.Expect("[", "after 'over'") || !Extents("i", &stage.spatial)) {
      return false;
    }
    bodies_.push_back(lexer_.position());
    workload_.stages.push_back(std::move(stage));
    lexer_.SkipLine();
    return true;
  }

  bool Bodies() {
    for (size_t s = 0; s < workload_.stages.size(); ++s) {
      lexer_.Seek(bodies_[s]);
      if (!Body(&workload_.stages[s])) return false;
    }
    return true;
  }

  bool Body(Stage* stage) {
    expr_.SetAxes(stage->num_spatial(), 0);
    if (lexer_.TryWord("at") &&
        !(lexer_.Expect("[", "after 'at'") && ExprList("]", &stage->store))) {
      return false;
    }
    if (!lexer_.Expect("=", "before a Stage's body")) return false;
    const size_t place = lexer_.position();
    const std::optional<Combiner> combiner = ParseCombiner(lexer_.TryIdentifier());
    if (combiner && lexer_.TryTake("[")) {
      stage->combiner = *combiner;
      if (!Extents("r", &stage->reduce) || !lexer_.Expect("(", "before the reduced expression")) {
        return false;
      }
      expr_.SetAxes(stage->num_spatial(), stage->num_reduce());
      if (!ExprList(")", &stage->body)) return false;
    } else {
      lexer_.Seek(place);
      stage->body.push_back(expr_.Parse());
    }
    return !lexer_.failed() && CheckBody(*stage) && lexer_.ExpectEndOfLine();
  }

  bool ExprList(std::string_view close, std::vector<Expr>* list) {
    if (lexer_.TryTake(close)) return true;
    do {
      Expr e = expr_.Parse();
      if (e == nullptr) return false;
      list->push_back(std::move(e));
    } while (lexer_.TryTake(","));
    return lexer_.Expect(close, "after a list");
  }

  bool CheckBody(const Stage& stage) {
    if (stage.body.size() != stage.results.size()) {
      return lexer_.Fail("the Stage has " + std::to_string(stage.results.size()) + " results and " +
                         std::to_string(stage.body.size()) + " bodies");
    }
    for (size_t k = 0; k < stage.body.size(); ++k) {
      const Tensor& result = workload_.tensors[static_cast<size_t>(stage.results[k])];
      if (stage.body[k]->dtype != result.dtype) {
        return lexer_.Fail("the body is " + std::string(ToString(stage.body[k]->dtype)) + ", but " +
                           result.name + " is " + std::string(ToString(result.dtype)));
      }
    }
    return true;
  }

  ParseLexer lexer_;
  Workload workload_;
  std::unordered_map<std::string, int> ids_;
  std::vector<size_t> bodies_;
  ExprParser expr_;
};

}  // namespace

absl::StatusOr<Workload> ParseWorkload(std::string_view text) {
  if (text.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError("workload text: " + std::to_string(text.size()) +
                                      " bytes are more than the limit of " +
                                      std::to_string(kMaxTextBytes));
  }
  return WorkloadParser(text).Parse();
}

}  // namespace hone::ir
