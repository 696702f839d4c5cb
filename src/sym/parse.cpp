#include "umbra/sym/parse.h"

#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "sym/float_functions.h"
#include "umbra/core/error.h"
#include "umbra/sym/shape_env.h"

namespace umbra::sym {
namespace {

constexpr size_t kLongestText = size_t{1} << 16;
constexpr int kDeepest = 400;  // steps of the grammar; about a hundred pairs of parentheses
constexpr size_t kMostNodes = 2000;

bool name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

/// A function of the text and what it makes. Arity 0 is any number of arguments from one up.
struct Function {
  std::string_view name;
  Kind kind;
  size_t arity;
};
constexpr Function kFunctions[] = {
    {"Add", Kind::Add, 0},
    {"Mul", Kind::Mul, 0},
    {"Min", Kind::Min, 0},
    {"Max", Kind::Max, 0},
    {"min", Kind::Min, 0},
    {"max", Kind::Max, 0},
    {"torch.sym_min", Kind::Min, 0},
    {"torch.sym_max", Kind::Max, 0},
    {"And", Kind::And, 0},
    {"Or", Kind::Or, 0},
    {"Not", Kind::Not, 1},
    {"torch.sym_not", Kind::Not, 1},
    {"Pow", Kind::Pow, 2},
    {"PowByNatural", Kind::Pow, 2},
    {"FloatPow", Kind::FloatPow, 2},
    {"FloorDiv", Kind::FloorDiv, 2},
    {"CleanDiv", Kind::FloorDiv, 2},
    {"Mod", Kind::Mod, 2},
    {"PythonMod", Kind::Mod, 2},
    {"BitwiseFn_bitwise_and", Kind::BitAnd, 2},
    {"BitwiseFn_bitwise_or", Kind::BitOr, 2},
    {"BitwiseFn_bitwise_xor", Kind::BitXor, 2},
    {"IntTrueDiv", Kind::IntTrueDiv, 2},
    {"FloatTrueDiv", Kind::FloatTrueDiv, 2},
    {"ToFloat", Kind::ToFloat, 1},
    {"torch.sym_float", Kind::ToFloat, 1},
    {"torch.sym_sqrt", Kind::Sqrt, 1},
    {"RoundToInt", Kind::RoundToInt, 1},
    {"RoundDecimal", Kind::RoundDecimal, 2},
    {"FloorToInt", Kind::FloorToInt, 1},
    {"CeilToInt", Kind::CeilToInt, 1},
    {"TruncToInt", Kind::TruncToInt, 1},
    {"math.floor", Kind::FloorToInt, 1},
    {"math.ceil", Kind::CeilToInt, 1},
    {"math.trunc", Kind::TruncToInt, 1},
    {"Where", Kind::Where, 3},
    {"torch.sym_ite", Kind::Where, 3},
    {"Eq", Kind::Eq, 2},
    {"Equality", Kind::Eq, 2},
    {"Ne", Kind::Ne, 2},
    {"Unequality", Kind::Ne, 2},
    {"StrictLessThan", Kind::Lt, 2},
    {"LessThan", Kind::Le, 2},
};

/// "OpaqueUnaryFn_cos", "torch._sym_cos" or "math.cos".
const FloatFunction* function_of_float(std::string_view word) {
  for (std::string_view prefix : {"OpaqueUnaryFn_", "torch._sym_", "math."})
    for (const FloatFunction& function : float_functions())
      if (word.starts_with(prefix) && word.substr(prefix.size()) == function.name) return &function;
  return nullptr;
}

class Parser {
 public:
  Parser(ShapeEnv& env, std::string_view text, const ParseOptions& options)
      : env_(env), table_(env.table()), text_(text), options_(options) {}

  const Expression* run() {
    if (text_.size() > kLongestText) stop("the text is too long");
    const Expression* result = conditional();
    skip_blanks();
    if (at_ != text_.size()) stop("expected the end");
    return result;
  }

 private:
  [[noreturn]] void stop(std::string_view what) const {
    std::string shown(text_.substr(0, 200));
    if (text_.size() > 200) shown += "...";
    fail<ValueError>("cannot read the symbolic expression \"", shown, "\" at position ", at_, ": ", what);
  }

  // ---- characters
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool looking_at(std::string_view token) {
    skip_blanks();
    return text_.substr(at_).starts_with(token);
  }
  bool take(std::string_view token) {
    if (!looking_at(token)) return false;
    at_ += token.size();
    return true;
  }
  bool take_word(std::string_view word) {
    if (!looking_at(word)) return false;
    size_t end = at_ + word.size();
    if (end < text_.size() && (name_start(text_[end]) || digit(text_[end]))) return false;
    at_ = end;
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) stop("expected '" + std::string(token) + "'");
  }
  std::string_view name() {
    size_t start = at_;
    while (at_ < text_.size() && (name_start(text_[at_]) || (at_ > start && digit(text_[at_])))) ++at_;
    return text_.substr(start, at_ - start);
  }
  std::string_view dotted_name() {
    skip_blanks();
    size_t start = at_;
    name();
    while (at_ + 1 < text_.size() && text_[at_] == '.' && name_start(text_[at_ + 1])) {
      ++at_;
      name();
    }
    return text_.substr(start, at_ - start);
  }
  std::string_view quoted() {
    skip_blanks();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) stop("expected a quoted text");
    char quote = text_[at_++];
    size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) stop("a quoted text does not end");
    std::string_view inside = text_.substr(at_, end - at_);
    at_ = end + 1;
    return inside;
  }

  // ---- guards against hostile text
  struct Level {
    explicit Level(Parser& parser) : parser(parser) {
      if (++parser.depth_ > kDeepest) parser.stop("it is nested too deeply");
    }
    ~Level() { --parser.depth_; }
    Parser& parser;
  };
  const Expression* count(const Expression* node) {
    if (++nodes_ > kMostNodes) stop("it has too many parts");
    return node;
  }
  const Expression* number_typed(const Expression* a) {
    if (a->type() == Type::Bool) stop("a number is expected, not a condition");
    return a;
  }
  const Expression* bool_typed(const Expression* a) {
    if (a->type() != Type::Bool) stop("a condition is expected, not a number");
    return a;
  }
  const Expression* make(Kind kind, const std::vector<const Expression*>& args) {
    bool logical = kind == Kind::And || kind == Kind::Or || kind == Kind::Not;
    for (size_t i = 0; i < args.size(); ++i) {
      if (logical || (kind == Kind::Where && i == 0)) bool_typed(args[i]);
      else number_typed(args[i]);
    }
    bool integers = kind == Kind::BitAnd || kind == Kind::BitOr || kind == Kind::BitXor;
    if (integers && (args[0]->type() != Type::Int || args[1]->type() != Type::Int))
      stop("operators on bits are for integers");
    try {
      return count(table_.make(kind, args));
    } catch (const ValueError&) {
      throw;
    } catch (const Error& error) {
      stop(error.what());
    }
  }

  // ---- the grammar, loosest first
  const Expression* conditional() {
    Level level(*this);
    const Expression* value = disjunction();
    if (!take_word("if")) return value;
    const Expression* condition = disjunction();
    if (!take_word("else")) stop("expected 'else'");
    return make(Kind::Where, {condition, value, conditional()});
  }

  const Expression* disjunction() {
    std::vector<const Expression*> parts = {conjunction()};
    while (take_word("or")) parts.push_back(conjunction());
    return parts.size() == 1 ? parts[0] : make(Kind::Or, parts);
  }

  const Expression* conjunction() {
    std::vector<const Expression*> parts = {negation()};
    while (take_word("and")) parts.push_back(negation());
    return parts.size() == 1 ? parts[0] : make(Kind::And, parts);
  }

  const Expression* negation() {
    Level level(*this);
    if (take_word("not")) return make(Kind::Not, {negation()});
    return comparison();
  }

  /// `a < b`, and Python's chains: `2 <= a <= 5`.
  const Expression* comparison() {
    const Expression* left = bit_or();
    std::vector<const Expression*> parts;
    while (true) {
      static constexpr std::string_view kSigns[] = {"==", "!=", "<=", ">=", "<", ">"};
      size_t sign = 0;
      while (sign < std::size(kSigns) && !take(kSigns[sign])) ++sign;
      if (sign == std::size(kSigns)) break;
      const Expression* right = bit_or();
      switch (sign) {
        case 0: parts.push_back(make(Kind::Eq, {left, right})); break;
        case 1: parts.push_back(make(Kind::Ne, {left, right})); break;
        case 2: parts.push_back(make(Kind::Le, {left, right})); break;
        case 3: parts.push_back(make(Kind::Le, {right, left})); break;
        case 4: parts.push_back(make(Kind::Lt, {left, right})); break;
        default: parts.push_back(make(Kind::Lt, {right, left})); break;
      }
      left = right;
    }
    if (parts.empty()) return left;
    return parts.size() == 1 ? parts[0] : make(Kind::And, parts);
  }

  /// `|` and `&` of conditions or, of integers, of their bits.
  const Expression* bitwise(Kind of_conditions, Kind of_integers, const Expression* left, const Expression* right) {
    return make(left->type() == Type::Bool ? of_conditions : of_integers, {left, right});
  }

  const Expression* bit_or() {
    const Expression* left = bit_xor();
    while (take("|")) left = bitwise(Kind::Or, Kind::BitOr, left, bit_xor());
    return left;
  }

  const Expression* bit_xor() {
    const Expression* left = bit_and();
    while (take("^")) left = bitwise(Kind::Ne, Kind::BitXor, left, bit_and());
    return left;
  }

  const Expression* bit_and() {
    const Expression* left = sum();
    while (take("&")) left = bitwise(Kind::And, Kind::BitAnd, left, sum());
    return left;
  }

  const Expression* sum() {
    std::vector<const Expression*> terms = {product()};
    while (true) {
      if (take("+")) terms.push_back(product());
      else if (take("-")) terms.push_back(make(Kind::Mul, {table_.integer(-1), product()}));
      else break;
    }
    return terms.size() == 1 ? terms[0] : make(Kind::Add, terms);
  }

  const Expression* product() {
    const Expression* left = sign();
    while (true) {
      if (looking_at("**")) return left;
      if (take("//")) left = make(Kind::FloorDiv, {left, sign()});
      else if (take("*")) left = make(Kind::Mul, {left, sign()});
      else if (take("/")) left = make(Kind::FloatTrueDiv, {left, sign()});
      else if (take("%")) left = make(Kind::Mod, {left, sign()});
      else return left;
    }
  }

  const Expression* sign() {
    Level level(*this);
    if (take("-")) return make(Kind::Mul, {table_.integer(-1), sign()});
    if (take("~")) return make(Kind::Not, {sign()});
    if (take("+")) return sign();
    const Expression* base = atom();
    if (!take("**")) return base;
    return make(Kind::Pow, {base, sign()});
  }

  const Expression* atom() {
    Level level(*this);
    skip_blanks();
    if (at_ >= text_.size()) stop("something is missing");
    if (take("(")) {
      const Expression* inner = conditional();
      expect(")");
      return inner;
    }
    char c = text_[at_];
    if (digit(c) || c == '.') return number();
    if (!name_start(c)) stop(std::string("'") + c + "' is not expected here");
    size_t start = at_;
    std::string_view word = dotted_name();
    if (at_ < text_.size() && text_[at_] == '[') {
      at_ = start;
      return input_path();
    }
    if (take("(")) return call(word);
    if (word == "True" || word == "true") return table_.boolean(true);
    if (word == "False" || word == "false") return table_.boolean(false);
    if (word == "int_oo" || word == "oo") return table_.integer(kInfinity);
    if (word.find('.') != std::string_view::npos) stop("not a symbol's name");
    return count(symbol(word, std::nullopt));
  }

  const Expression* number() {
    size_t start = at_;
    while (at_ < text_.size() && digit(text_[at_])) ++at_;
    bool floating = at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E');
    std::string_view rest = text_.substr(start);
    if (!floating) {
      std::optional<Integer> value = read_integer(rest.substr(0, at_ - start));
      if (!value) stop("the number does not fit 128 bits");
      return count(table_.integer(*value));
    }
    double value = 0;
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc()) stop("not a number");
    at_ = start + static_cast<size_t>(end - rest.data());
    return count(table_.real(value));
  }

  /// `L['x'].size()[0]`: kept as text, and given to whoever knows the inputs.
  const Expression* input_path() {
    size_t start = at_;
    dotted_name();
    while (at_ < text_.size()) {
      if (text_[at_] == '[') {
        ++at_;
        if (at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"')) quoted();
        else
          while (at_ < text_.size() && digit(text_[at_])) ++at_;
        expect("]");
      } else if (text_[at_] == '.') {
        ++at_;
        name();
        if (at_ < text_.size() && text_[at_] == '(') {
          ++at_;
          expect(")");
        }
      } else {
        break;
      }
    }
    if (!options_.source) stop("a path into the inputs is not expected here");
    const Expression* meaning = options_.source(text_.substr(start, at_ - start));
    if (!meaning) stop("there is no such input");
    return count(meaning);
  }

  const Expression* symbol(std::string_view name, std::optional<bool> positive) {
    if (options_.symbol) {
      const Expression* known = options_.symbol(name, positive);
      if (!known) stop("the symbol " + std::string(name) + " is not known");
      return known;
    }
    // In the infix form sizes are told by their name.
    return env_.declare_symbol(name, positive.value_or(name.starts_with('s')));
  }

  // ---- calls, after their opening parenthesis
  const Expression* call(std::string_view word) {
    if (word == "Integer") return integer_call();
    if (word == "Symbol") return symbol_call();
    if (word == "Float") return float_call();
    if (word == "Piecewise") return piecewise_call();
    std::vector<const Expression*> args;
    if (!take(")")) {
      do args.push_back(conditional());
      while (take(","));
      expect(")");
    }
    if (args.size() == 2 && word == "StrictGreaterThan") return make(Kind::Lt, {args[1], args[0]});
    if (args.size() == 2 && word == "GreaterThan") return make(Kind::Le, {args[1], args[0]});
    if (args.size() == 2 && word == "CeilDiv")  // -(-a // b)
      return make(Kind::Mul, {table_.integer(-1),
                              make(Kind::FloorDiv, {make(Kind::Mul, {table_.integer(-1), args[0]}), args[1]})});
    if (args.size() == 3 && word == "ModularIndexing")
      return make(Kind::Mod, {make(Kind::FloorDiv, {args[0], args[1]}), args[2]});
    if (args.size() == 1 && word == "Identity") return args[0];
    if (word == "round" && !args.empty() && args.size() <= 2)
      return make(args.size() == 1 ? Kind::RoundToInt : Kind::RoundDecimal, args);
    if (const FloatFunction* function = args.size() == 1 ? function_of_float(word) : nullptr)
      return make(function->kind, args);
    for (const Function& function : kFunctions) {
      if (function.name != word) continue;
      if (args.empty() || (function.arity != 0 && args.size() != function.arity))
        stop("wrong number of arguments for " + std::string(word));
      return make(function.kind, args);
    }
    stop("the function " + std::string(word.substr(0, 60)) + " is not known");
  }

  const Expression* integer_call() {
    bool negative = take("-");
    skip_blanks();
    if (at_ >= text_.size() || !digit(text_[at_])) stop("expected an integer");
    const Expression* value = number();
    expect(")");
    if (!value->is(Kind::Integer)) stop("expected an integer");
    return negative ? table_.integer(-value->integer()) : value;
  }

  /// `Piecewise(ExprCondPair(a, condition), ..., ExprCondPair(z, true))`: sympy's form of a choice.
  const Expression* piecewise_call() {
    std::vector<std::pair<const Expression*, const Expression*>> pieces;
    do {
      take_word("ExprCondPair");
      expect("(");
      const Expression* value = conditional();
      expect(",");
      pieces.emplace_back(value, bool_typed(conditional()));
      expect(")");
    } while (take(","));
    expect(")");
    const Expression* otherwise = pieces.back().second;
    if (!otherwise->is(Kind::Boolean) || !otherwise->truth()) stop("the last piece has to be for what is left");
    const Expression* result = pieces.back().first;
    for (size_t i = pieces.size() - 1; i-- > 0;)
      result = make(Kind::Where, {pieces[i].second, pieces[i].first, result});
    return result;
  }

  const Expression* float_call() {
    std::string_view digits = quoted();
    if (take(",")) {
      if (!take_word("precision")) stop("expected 'precision'");
      expect("=");
      number();
    }
    expect(")");
    double value = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) stop("not a number");
    return count(table_.real(value));
  }

  const Expression* symbol_call() {
    std::string_view name = quoted();
    bool valid = !name.empty() && name.size() < 100 && name_start(name[0]);
    for (char c : name) valid &= name_start(c) || digit(c);
    if (!valid) stop("not a symbol's name");
    bool positive = false;
    while (take(",")) {
      skip_blanks();
      std::string_view assumption = this->name();
      expect("=");
      bool value = take_word("True");
      if (!value && !take_word("False")) stop("expected True or False");
      if (assumption == "positive") positive = value;
    }
    expect(")");
    return count(symbol(name, positive));
  }

  ShapeEnv& env_;
  ExpressionTable& table_;
  std::string_view text_;
  const ParseOptions& options_;
  size_t at_ = 0;
  int depth_ = 0;
  size_t nodes_ = 0;
};

}  // namespace

const Expression* parse(ShapeEnv& env, std::string_view text, const ParseOptions& options) {
  return Parser(env, text, options).run();
}

}  // namespace umbra::sym
