// The grammar of JSON texts (RFC 8259), as far as answers use it: between two tokens stands nothing, one
// blank, or one or two newlines and up to 20 blanks and tabs; numbers have at most 32 characters.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/grammar/grammar_builder.h"

namespace sluice::engine {

// Rules are made when they are first asked for. The builder must outlive this.
class JsonParts {
 public:
  explicit JsonParts(GrammarBuilder& builder) : builder_(builder) {}

  GrammarRule space();
  GrammarRule value();   // anything
  GrammarRule object();  // any
  GrammarRule array();
  GrammarRule string();
  GrammarRule number();
  GrammarRule integer();
  GrammarRule character();  // one code point of a string, or its escape

  // A sign between two tokens, with the space around it.
  GrammarPart between(char sign);
  // … with the space behind, or before it.
  GrammarPart opening(char sign), closing(char sign);
  // Integers from `low` to `high`. An open side ends where numbers become longer than 16 digits, or where
  // 64 bits end.
  GrammarPart integers(std::optional<std::int64_t> low, std::optional<std::int64_t> high);

 private:
  using Made = std::optional<GrammarRule>;
  GrammarPart digits(std::uint32_t min, std::uint32_t max);
  GrammarPart whole_number();
  GrammarPart naturals(std::uint64_t low, std::uint64_t high);

  GrammarBuilder& builder_;
  Made space_, value_, object_, array_, string_, number_, integer_, character_;
};

}  // namespace sluice::engine
