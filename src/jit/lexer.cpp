#include "jit/lexer.h"

#include <algorithm>

namespace umbra::jit {

std::string type_comment(const SourceText& source, size_t colon, int lines) {
  static constexpr std::string_view kMark = "# type:";
  const std::string& text = source.text;
  size_t end = text.find('\n', colon);
  for (; lines > 0 && colon < text.size(); --lines) {
    std::string_view line = std::string_view(text).substr(colon, end - colon);
    size_t at = line.find(kMark);
    if (at != std::string_view::npos && line.find("ignore", at) == std::string_view::npos)
      return std::string(line.substr(at + kMark.size()));
    if (end == std::string::npos) break;
    colon = end + 1;
    end = text.find('\n', colon);
  }
  return "";
}

namespace {

class Lexer {
 public:
  explicit Lexer(const SourcePtr& source) : source_(source), text_(source->text) {}

  std::vector<Token> run() {
    at_ = std::min(text_.find('\0'), text_.size());
    if (at_ < text_.size()) refuse("source code cannot contain null bytes");
    at_ = 0;
    while (at_ < text_.size()) line();
    while (indents_.size() > 1) {
      indents_.pop_back();
      add(Token::Kind::Dedent, at_, at_);
    }
    add(Token::Kind::End, at_, at_);
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void refuse(const char* why) {
    throw CompileError(concat(why, ":\n", SourceRange{source_, at_, at_ + 1}.pointed()));
  }
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  void add(Token::Kind kind, size_t begin, size_t end) {
    tokens_.push_back({kind, text_.substr(begin, end - begin), "", begin, end});
  }

  void line() {
    size_t width = 0;
    while (peek() == ' ' || peek() == '\t') width += text_[at_++] == '\t' ? 8 - width % 8 : 1;
    if (peek() == '#') skip_comment();
    if (peek() == '\n' || peek() == '\r' || peek() == '\0') {
      if (at_ < text_.size()) ++at_;
      return;
    }
    if (width > indents_.back()) {
      check<CompileError>(indents_.size() < 500, "the program is nested too deeply");
      indents_.push_back(width);
      add(Token::Kind::Indent, at_, at_);
    }
    while (width < indents_.back()) {
      indents_.pop_back();
      add(Token::Kind::Dedent, at_, at_);
    }
    if (width != indents_.back()) refuse("unindent does not match any outer indentation level");
    while (true) {
      while (peek() == ' ' || peek() == '\t' || peek() == '\f' || (depth_ > 0 && (peek() == '\n' || peek() == '\r')))
        ++at_;
      if (peek() == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
        at_ += peek(1) == '\r' ? 3 : 2;
        continue;
      }
      if (peek() == '#') {
        skip_comment();
        continue;
      }
      if (at_ >= text_.size() || peek() == '\n' || peek() == '\r') break;
      token();
    }
    add(Token::Kind::Newline, at_, at_);
    if (peek() == '\r') ++at_;
    if (peek() == '\n') ++at_;
  }

  void skip_comment() {
    while (at_ < text_.size() && peek() != '\n') ++at_;
  }

  void token() {
    size_t begin = at_;
    unsigned char c = static_cast<unsigned char>(peek());
    if (std::isdigit(c) || (c == '.' && std::isdigit(static_cast<unsigned char>(peek(1))))) return number(begin);
    if (std::isalpha(c) || c == '_' || c >= 128) {
      while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '_' ||
             static_cast<unsigned char>(peek()) >= 128)
        ++at_;
      if ((peek() == '"' || peek() == '\'') && at_ - begin <= 2) {
        std::string prefix = text_.substr(begin, at_ - begin);
        std::transform(prefix.begin(), prefix.end(), prefix.begin(), ::tolower);
        if (prefix.find_first_not_of("frbu") == std::string::npos) return string(begin, prefix);
      }
      return add(Token::Kind::Name, begin, at_);
    }
    if (c == '"' || c == '\'') return string(begin, "");
    static const char* const symbols[] = {"**=", "//=", ">>=", "<<=", "...", "!=", "->", ":=", "**", "//", ">>", "<<",
                                          "<=",  ">=",  "==",  "+=",  "-=",  "*=", "/=", "%=", "&=", "|=", "^=", "@="};
    for (const char* s : symbols)
      if (text_.compare(at_, std::char_traits<char>::length(s), s) == 0) {
        at_ += std::char_traits<char>::length(s);
        return add(Token::Kind::Symbol, begin, at_);
      }
    if (std::string_view("+-*/%@&|^~<>()[]{},:.;=").find(static_cast<char>(c)) == std::string_view::npos)
      refuse("unexpected character");
    if (c == '(' || c == '[' || c == '{') check<CompileError>(++depth_ < 500, "the program is nested too deeply");
    if ((c == ')' || c == ']' || c == '}') && depth_ > 0) --depth_;
    ++at_;
    add(Token::Kind::Symbol, begin, at_);
  }

  void number(size_t begin) {
    auto digits = [&] {
      while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '_' || peek() == '.') {
        bool exponent = (peek() == 'e' || peek() == 'E') && text_.compare(begin, 2, "0x") != 0;
        ++at_;
        if (exponent && (peek() == '+' || peek() == '-')) ++at_;
      }
    };
    digits();
    add(Token::Kind::Number, begin, at_);
  }

  void string(size_t begin, std::string prefix) {
    char quote = peek();
    bool triple = peek(1) == quote && peek(2) == quote;
    bool raw = prefix.find('r') != std::string::npos;
    at_ += triple ? 3 : 1;
    std::string out;
    while (true) {
      if (at_ >= text_.size() || (!triple && peek() == '\n')) refuse("a string that does not end");
      if (peek() == quote && (!triple || (peek(1) == quote && peek(2) == quote))) break;
      if (peek() == '\\' && raw) out += text_[at_++];
      else if (peek() == '\\') {
        escape(out);
        continue;
      }
      out += text_[at_++];
    }
    at_ += triple ? 3 : 1;
    tokens_.push_back({Token::Kind::String, std::move(out), std::move(prefix), begin, at_});
  }

  void escape(std::string& out) {
    char c = peek(1);
    at_ += 2;
    switch (c) {
      case 'n': out += '\n'; return;
      case 't': out += '\t'; return;
      case 'r': out += '\r'; return;
      case 'a': out += '\a'; return;
      case 'b': out += '\b'; return;
      case 'f': out += '\f'; return;
      case 'v': out += '\v'; return;
      case '\n': return;
      case '\\':
      case '\'':
      case '"': out += c; return;
      case 'x': return character(code(16, 2), out);
      case 'u': return character(code(16, 4), out);
      case 'U': return character(code(16, 8), out);
      default:
        if (c >= '0' && c <= '7') {
          --at_;
          out += static_cast<char>(code(8, 3));
          return;
        }
        (out += '\\') += c;
    }
  }
  /// A character by its number, as UTF-8 has it.
  static void character(int number, std::string& out) {
    auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((number >> shift) & 0x3f)); };
    if (number < 0x80) return void(out += static_cast<char>(number));
    if (number < 0x800) out += static_cast<char>(0xc0 | (number >> 6));
    else if (number < 0x10000) out += static_cast<char>(0xe0 | (number >> 12)), tail(6);
    else out += static_cast<char>(0xf0 | (number >> 18)), tail(12), tail(6);
    tail(0);
  }
  int code(int base, int most) {
    int value = 0;
    for (int i = 0; i < most && std::isxdigit(static_cast<unsigned char>(peek())); ++i) {
      int digit = std::isdigit(static_cast<unsigned char>(peek())) ? peek() - '0' : (peek() | 32) - 'a' + 10;
      if (digit >= base) break;
      value = value * base + digit;
      ++at_;
    }
    return value;
  }

  const SourcePtr& source_;
  const std::string& text_;
  size_t at_ = 0;
  int depth_ = 0;
  std::vector<size_t> indents_{0};
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(const SourcePtr& source) { return Lexer(source).run(); }

}  // namespace umbra::jit
