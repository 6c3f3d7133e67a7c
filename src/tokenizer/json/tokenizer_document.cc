#include "tokenizer/json/tokenizer_document.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json/json_builder.h"
#include "base/json/parse_fault.h"
#include "tokenizer/text/printable.h"

namespace sluice::tokenizer {
namespace {

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxSmallValues =
    500'000;  // outside model.vocab and model.merges; the largest published has 20,000
constexpr std::size_t kMaxMerges = 1 << 24;
constexpr std::size_t kStringsBetweenStops = 4096;

class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  enum class Root { kTokenizer, kVocabulary };
  Handler(TokenizerDocument& document, const std::string& name, Root root, const StopRequest& stop)
      : document_(document),
        name_(name),
        stop_(stop),
        tree_(document.rest),
        vocabulary_next_(root == Root::kVocabulary) {}

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(number_integer_t value) override {
    if (in_scores()) return score(static_cast<double>(value));
    if (state_ == State::kVocabulary) wrong_id(std::to_string(value));
    return scalar(value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (in_scores()) return score(static_cast<double>(value));
    if (state_ != State::kVocabulary) return scalar(value);
    if (value > static_cast<number_unsigned_t>(Vocabulary::kMaxId)) wrong_id(std::to_string(value));
    const auto id = static_cast<TokenId>(value);
    switch (document_.vocabulary.add(token_, id)) {
      case Vocabulary::Added::kYes:
        return true;
      case Vocabulary::Added::kContentTaken:
        listed_twice();
      case Vocabulary::Added::kIdTaken:
        throw Error(ErrorKind::kInvalid, "two tokens have one id")
            .in(name_ + ": " + vocabulary_field_)
            .expected("every id once")
            .found(fmt::format("{} for {} and {}", id, printable(*document_.vocabulary.content(id)),
                               printable(token_)))
            .fix("download the tokenizer files again");
    }
    return true;
  }
  bool number_float(number_float_t value, const string_t& text) override {
    if (in_scores()) return score(value);
    if (state_ == State::kVocabulary) wrong_id(text);
    return scalar(value);
  }
  bool string(string_t& value) override {
    stop_if_asked();
    switch (state_) {
      case State::kSmall:
        return scalar(std::move(value));
      case State::kVocabulary:
        wrong_id(printable(value));
      case State::kMerges:
        if (value.starts_with("#version")) return true;
        add_merge_line(document_.merges, value, merge_place());
        count_merge();
        return true;
      case State::kPair:
        if (++pair_parts_ > 2) wrong_pair();
        document_.merges.add_part(value);
        return true;
      case State::kScores:
        wrong_score();
      case State::kScored:
        if (++pair_parts_ != 1) wrong_score();
        token_.swap(value);
        return true;
    }
    return true;
  }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override {
    if (vocabulary_next_) {
      vocabulary_next_ = false;
      vocabulary_field_ = tree_.depth() == 0 ? "the vocabulary" : "model.vocab";
      document_.has_vocabulary = true;
      state_ = State::kVocabulary;
      return true;
    }
    return open(Json::object());
  }
  bool end_object() override {
    if (state_ == State::kVocabulary) {
      state_ = State::kSmall;
      return true;
    }
    return close();
  }
  bool start_array(std::size_t) override {
    if (vocabulary_next_ && tree_.depth() > 0) {
      vocabulary_next_ = false;
      vocabulary_field_ = "model.vocab";
      document_.has_scores = true;
      state_ = State::kScores;
      return true;
    }
    if (state_ == State::kScores) {
      state_ = State::kScored;
      pair_parts_ = 0;
      return true;
    }
    if (merges_next_) {
      merges_next_ = false;
      document_.has_merges = true;
      state_ = State::kMerges;
      return true;
    }
    if (state_ == State::kMerges) {
      state_ = State::kPair;
      pair_parts_ = 0;
      return true;
    }
    return open(Json::array());
  }
  bool end_array() override {
    switch (state_) {
      case State::kPair:
        if (pair_parts_ != 2) wrong_pair();
        count_merge();
        state_ = State::kMerges;
        return true;
      case State::kMerges:
      case State::kScores:
        state_ = State::kSmall;
        return true;
      case State::kScored:
        add_scored();
        state_ = State::kScores;
        return true;
      default:
        return close();
    }
  }

  bool key(string_t& key) override {
    stop_if_asked();
    if (state_ == State::kVocabulary) {
      token_.swap(key);
      return true;
    }
    if (!tree_.key(key)) {
      throw Error(ErrorKind::kInvalid, "duplicate key in JSON object")
          .in(name_)
          .found(printable(key))
          .fix("download the tokenizer files again");
    }
    if (tree_.depth() == 1) in_model_ = key == "model";
    const bool of_model = tree_.depth() == 2 && in_model_;
    vocabulary_next_ = of_model && key == "vocab";
    merges_next_ = of_model && key == "merges";
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) override {
    throw Error(ErrorKind::kInvalid, "not valid JSON")
        .in(name_, position > 0 ? position - 1 : 0)
        .expected("JSON")
        .found(printable(parse_fault(e.what())))
        .fix("download the tokenizer files again");
  }

 private:
  enum class State { kSmall, kVocabulary, kMerges, kPair, kScores, kScored };

  void stop_if_asked() {
    if (++strings_ % kStringsBetweenStops == 0) stop_if(stop_);
  }
  bool in_scores() const { return state_ == State::kScores || state_ == State::kScored; }
  [[noreturn]] void wrong_score() const {
    throw Error(ErrorKind::kInvalid, "not a token with its score")
        .in(fmt::format("{}: model.vocab[{}]", name_, document_.scores.size()))
        .expected("a string and a number")
        .fix("download the tokenizer files again");
  }
  bool score(double value) {
    if (state_ != State::kScored || ++pair_parts_ != 2 || !std::isfinite(value)) wrong_score();
    score_ = value;
    return true;
  }
  // The end of [token, score]; the token's id is its place.
  void add_scored() {
    if (pair_parts_ != 2) wrong_score();
    const std::size_t id = document_.scores.size();
    if (id > static_cast<std::size_t>(Vocabulary::kMaxId)) {
      throw Error(ErrorKind::kInvalid, "too many tokens")
          .in(name_ + ": model.vocab")
          .expected(fmt::format("at most {}", Vocabulary::kMaxId));
    }
    if (document_.vocabulary.add(token_, static_cast<TokenId>(id)) != Vocabulary::Added::kYes) listed_twice();
    document_.scores.push_back(score_);
  }
  [[noreturn]] void listed_twice() const {
    throw Error(ErrorKind::kInvalid, "token is listed twice")
        .in(name_ + ": " + vocabulary_field_)
        .found(printable(token_))
        .fix("download the tokenizer files again");
  }

  [[noreturn]] void wrong_id(const std::string& found) const {
    throw Error(ErrorKind::kInvalid, "token has a wrong id")
        .in(name_ + ": " + vocabulary_field_ + "[" + printable(token_) + "]")
        .expected(fmt::format("an integer in [0, {}]", Vocabulary::kMaxId))
        .found(found)
        .fix("download the tokenizer files again");
  }
  std::string merge_place() const {
    return fmt::format("{}: model.merges[{}]", name_, document_.merges.size());
  }
  [[noreturn]] void wrong_pair() const {
    throw Error(ErrorKind::kInvalid, "not a merge rule")
        .in(fmt::format("{}: model.merges[{}]", name_, merges_read_))
        .expected("two tokens, or a string of two with one space between them")
        .fix("download the tokenizer files again");
  }
  void count_merge() {
    if (++merges_read_ > kMaxMerges) {
      throw Error(ErrorKind::kInvalid, "too many merge rules")
          .in(name_ + ": model.merges")
          .expected(fmt::format("at most {}", kMaxMerges))
          .fix("download the tokenizer files again");
    }
  }

  void count_value() {
    if (++small_values_ > kMaxSmallValues) {
      throw Error(ErrorKind::kInvalid, "too many values outside the vocabulary")
          .in(name_)
          .expected(fmt::format("at most {}", kMaxSmallValues))
          .fix("download the tokenizer files again");
    }
  }

  template <class T>
  bool scalar(T&& value) {
    switch (state_) {
      case State::kVocabulary:
        wrong_id("another type");
      case State::kMerges:
      case State::kPair:
        wrong_pair();
      case State::kScores:
      case State::kScored:
        wrong_score();
      case State::kSmall:
        break;
    }
    vocabulary_next_ = merges_next_ = false;
    count_value();
    tree_.add(std::forward<T>(value));
    return true;
  }
  bool open(Json container) {
    if (state_ == State::kVocabulary) wrong_id("a container");
    if (in_scores()) wrong_score();
    if (state_ != State::kSmall) wrong_pair();
    vocabulary_next_ = merges_next_ = false;
    if (tree_.depth() >= kMaxDepth) {
      throw Error(ErrorKind::kInvalid, "JSON is nested too deeply")
          .in(name_)
          .expected(fmt::format("at most {} levels", kMaxDepth))
          .found("more")
          .fix("download the tokenizer files again");
    }
    count_value();
    tree_.open(std::move(container));
    return true;
  }
  bool close() {
    tree_.close();
    return true;
  }

  TokenizerDocument& document_;
  const std::string& name_;
  const StopRequest& stop_;
  std::size_t strings_ = 0;  // and keys
  JsonBuilder tree_;
  State state_ = State::kSmall;
  std::string vocabulary_field_;
  std::string token_;   // last key of the vocabulary
  int pair_parts_ = 0;  // so far in the rule, or scored token, being read
  double score_ = 0.0;
  std::size_t merges_read_ = 0;
  std::size_t small_values_ = 0;
  bool in_model_ = false;
  bool vocabulary_next_;      // the next value is the vocabulary, if it is an object
  bool merges_next_ = false;  // the next value is the merges, if it is an array
};

// Follows the syntax alone, to tell whether the text ends before its value does.
class EndFinder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit EndFinder(std::size_t size) : size_(size) {}
  bool ends_early() const { return ends_early_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool key(string_t&) override { return true; }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    ends_early_ = position > size_;
    return false;
  }

 private:
  std::size_t size_;
  bool ends_early_ = false;
};

void parse(std::string_view text, const std::string& name, Handler& handler) {
  if (text.size() > kMaxTokenizerBytes) {
    throw Error(ErrorKind::kInvalid, "JSON is too large")
        .in(name)
        .expected(fmt::format("at most {} bytes", kMaxTokenizerBytes))
        .found(std::to_string(text.size()))
        .fix("download the tokenizer files again");
  }
  const std::size_t nul = text.find('\0');  // nlohmann-json takes it for the end of the text
  if (nul != std::string_view::npos)
    throw Error(ErrorKind::kInvalid, "not valid JSON")
        .in(name, nul)
        .expected("JSON")
        .found("a NUL byte")
        .fix("download the tokenizer files again");
  const auto read = [text](nlohmann::json_sax<nlohmann::json>& reader) {
    return nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &reader,
                                     nlohmann::json::input_format_t::json, true, false);
  };
  try {
    const bool complete = read(handler);
    SLUICE_CHECK(complete, name);  // every failure has thrown
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInterrupted) throw;
    EndFinder finder(text.size());  // the first half of a number is another number
    read(finder);
    if (!finder.ends_early()) throw;
    throw Error(ErrorKind::kInvalid, "unexpected end of the JSON")
        .in(name, text.size())
        .expected("the rest of a JSON value")
        .found(text.empty() ? "an empty file" : "the end of the file")
        .fix("download the tokenizer files again");
  }
}

}  // namespace

TokenizerDocument read_tokenizer_document(std::string_view text, const std::string& name,
                                          const StopRequest& stop) {
  TokenizerDocument document;
  Handler handler(document, name, Handler::Root::kTokenizer, stop);
  parse(text, name, handler);
  document.vocabulary.shrink_to_fit();
  return document;
}

Vocabulary read_vocabulary_json(std::string_view text, const std::string& name, const StopRequest& stop) {
  TokenizerDocument document;
  Handler handler(document, name, Handler::Root::kVocabulary, stop);
  parse(text, name, handler);
  if (!document.has_vocabulary) {
    throw Error(ErrorKind::kInvalid, "not a vocabulary")
        .in(name)
        .expected("a JSON object of token ids")
        .fix("download the tokenizer files again");
  }
  document.vocabulary.shrink_to_fit();
  return std::move(document.vocabulary);
}

}  // namespace sluice::tokenizer
