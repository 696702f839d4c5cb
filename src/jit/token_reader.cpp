#include "jit/token_reader.h"

namespace umbra::jit {

constexpr int kDeepest = 200;

TokenReader::TokenReader(const SourcePtr& source) : source_(source), tokens_(tokenize(source)) {}

bool TokenReader::is(const char* text) const {
  return (now().kind == Token::Kind::Symbol || now().kind == Token::Kind::Name) && now().text == text;
}

void TokenReader::expect(const char* text) {
  if (!take(text)) refuse(concat("expected '", text, "'"));
}

std::string TokenReader::name() {
  if (!is(Token::Kind::Name)) refuse("expected a name");
  return tokens_[at_++].text;
}

void TokenReader::refuse(const std::string& why) {
  throw CompileError(concat(why, ":\n", SourceRange{source_, now().begin, now().end}.pointed()));
}

void TokenReader::unsupported(const std::string& what, size_t begin, size_t length) {
  throw UnsupportedSyntax(concat(what, " aren't supported:\n", SourceRange{source_, begin, begin + length}.pointed()),
                          true);
}

void TokenReader::misused(const std::string& what, size_t begin, size_t end) {
  throw UnsupportedSyntax(concat(what, ":\n", SourceRange{source_, begin, end}.pointed()), false);
}

void TokenReader::variable_arguments(size_t begin, size_t end) {
  misused("Compiled functions can't take variable number of arguments or use keyword-only arguments with defaults",
          begin, end);
}

TokenReader::Depth::Depth(TokenReader& reader) : reader(reader) {
  if (++reader.depth_ > kDeepest) reader.refuse("the program is nested too deeply");
}

TreePtr TokenReader::make(Syntax kind, size_t begin, std::vector<TreePtr> children, std::string text) {
  auto tree = std::make_shared<Tree>();
  tree->kind = kind;
  tree->children = std::move(children);
  tree->text = std::move(text);
  tree->source = source_;
  tree->begin = begin;
  tree->end = at_ > 0 ? std::max(tokens_[at_ - 1].end, begin) : begin;
  return tree;
}

}  // namespace umbra::jit
