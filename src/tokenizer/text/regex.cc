#include "tokenizer/text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/error.h"
#include "tokenizer/text/advice.h"
#include "tokenizer/text/regex_syntax.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

constexpr std::size_t kMaxPatternBytes = 64 * 1024;  // the longest published is below 1 KiB
constexpr std::uint32_t kMatchLimit = 10'000'000;    // backtracking steps of one match
constexpr std::uint32_t kHeapLimitKib = 64 * 1024;   // for one match in the interpreter
constexpr std::size_t kJitStackBytes = 8 << 20;      // used only when 32 KiB were not enough
// Bytes of starting points to try before reading the clock.
constexpr std::size_t kStartsPerCall = 4096;
// A pattern may be quadratic without ever reaching the match limit, because compiled code does not count the
// steps of a single repeat. Ordinary patterns take 20 to 50 ns per byte.
constexpr std::chrono::nanoseconds kTimePerByte{2000};
constexpr std::chrono::seconds kTimeBase{5};

template <auto free_function>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    free_function(object);
  }
};
using Code = std::unique_ptr<pcre2_code, Freed<pcre2_code_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Freed<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Freed<pcre2_match_context_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Freed<pcre2_jit_stack_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, Freed<pcre2_compile_context_free>>;

std::string message_of(int error) {
  PCRE2_UCHAR text[256] = "";
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

// What one thread needs to match any pattern: made once, because making it costs as much as matching a word.
struct Workspace {
  MatchData match{pcre2_match_data_create(1, nullptr)};
  MatchContext context{pcre2_match_context_create(nullptr)};
  JitStack stack;  // made when first needed

  Workspace() {
    SLUICE_CHECK(match && context);
    pcre2_set_match_limit(context.get(), kMatchLimit);
    pcre2_set_heap_limit(context.get(), kHeapLimitKib);
  }
  bool use_stack() {
    if (!stack) stack.reset(pcre2_jit_stack_create(64 * 1024, kJitStackBytes, nullptr));
    if (stack) pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
    return stack != nullptr;
  }
};

// One for each thread that tokenizes: callers of a tokenizer, no workers of a pool. At most kJitStackBytes of
// stack, which is made only for a match that needs it, or kHeapLimitKib where PCRE2 compiles nothing.
Workspace& workspace() {
  thread_local Workspace space;
  return space;
}

class Regex final : public Pattern {
 public:
  Regex(std::string_view pattern, std::string where) : where_(std::move(where)) {
    if (pattern.size() > kMaxPatternBytes) {
      throw Error(ErrorKind::kUnsupported, "regular expression is too long")
          .in(where_)
          .expected(fmt::format("at most {} bytes", kMaxPatternBytes))
          .found(fmt::format("{}", pattern.size()))
          .fix(tokens_instead_of_text());
    }
    std::string translated;
    try {
      translated = pcre2_from_oniguruma(pattern);
    } catch (Error& error) {
      throw std::move(error.in(where_).fix(tokens_instead_of_text()));
    }
    const CompileContext context(pcre2_compile_context_create(nullptr));
    SLUICE_CHECK(context);
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context.get(), 100);
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_.reset(pcre2_compile(
        reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
        PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT, &error,
        &offset, context.get()));
    if (!code_) {
      throw Error(ErrorKind::kInvalid, fmt::format("regular expression: {}", message_of(error)))
          .in(where_)
          .fix(tokens_instead_of_text());
    }
    // Without compiled code pcre2_match interprets the pattern, with the same result.
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
  }

  void find(std::string_view text, FunctionRef<void(const Match&)> report) const override {
    if (text.empty()) return;
    const Search search{text, std::chrono::steady_clock::now() + kTimeBase + kTimePerByte * text.size()};
    std::size_t done = 0;                   // end of the reported ranges
    std::size_t from = 0;                   // where the next search begins
    std::optional<std::size_t> last_match;  // end of the last match
    while (from <= text.size()) {
      const auto match = next(search, from);
      if (!match) break;
      const auto [begin, end] = *match;
      if (begin == end && last_match == end) {
        if (end >= text.size()) break;
        from = end + decode_valid_utf8(text.substr(end)).length;
        continue;
      }
      if (begin > done) report({done, begin, false});
      report({begin, end, true});
      done = from = end;
      last_match = end;
    }
    if (done < text.size()) report({done, text.size(), false});
  }

 private:
  struct Search {
    std::string_view text;
    std::chrono::steady_clock::time_point deadline;
  };

  // The leftmost match that begins at `from` or later. Tries starting points kStartsPerCall bytes at a time.
  std::optional<std::pair<std::size_t, std::size_t>> next(const Search& search, std::size_t from) const {
    const std::size_t size = search.text.size();
    while (true) {
      std::size_t limit = std::min(size, from + kStartsPerCall);
      while (limit < size && (search.text[limit] & 0xC0) == 0x80) ++limit;
      if (const auto match = match_between(search.text, from, limit)) return match;
      if (limit == size) return std::nullopt;
      if (std::chrono::steady_clock::now() > search.deadline) fail("it takes too long on this text");
      from = limit + decode_valid_utf8(search.text.substr(limit)).length;
    }
  }

  std::optional<std::pair<std::size_t, std::size_t>> match_between(std::string_view text, std::size_t from,
                                                                   std::size_t limit) const {
    Workspace& space = workspace();
    pcre2_set_offset_limit(space.context.get(), limit);
    const auto run = [&] {
      return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                         PCRE2_NO_UTF_CHECK, space.match.get(), space.context.get());
    };
    int result = run();
    if (result == PCRE2_ERROR_JIT_STACKLIMIT && space.use_stack()) result = run();
    if (result == PCRE2_ERROR_NOMATCH) return std::nullopt;
    if (result < 0) fail(message_of(result));
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(space.match.get());
    if (bounds[0] > bounds[1]) fail("a match that ends before it begins");  // \K in a look-ahead
    return std::pair<std::size_t, std::size_t>{bounds[0], bounds[1]};
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw Error(ErrorKind::kInvalid, fmt::format("regular expression cannot be matched: {}", what))
        .in(where_)
        .fix(tokens_instead_of_text());
  }

  std::string where_;
  Code code_;
};

}  // namespace

std::unique_ptr<Pattern> regex_pattern(std::string_view pattern, std::string where) {
  return std::make_unique<Regex>(pattern, std::move(where));
}

}  // namespace sluice::tokenizer
