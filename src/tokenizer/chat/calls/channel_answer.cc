#include "tokenizer/chat/calls/channel_answer.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::tokenizer {
namespace {

constexpr std::string_view kStart = "<|start|>assistant", kTo = "to=", kFunctions = "functions.";
constexpr std::size_t kLongestHeader = 512;

bool is_word_byte(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
         byte == '_' || byte == '-' || byte == '.' || byte == ':';
}

// Takes the word that the text begins with.
std::string take_word(std::string_view& text) {
  const auto* const end = std::ranges::find_if_not(text, is_word_byte);
  std::string word(text.begin(), end);
  text.remove_prefix(word.size());
  return word;
}

bool take_mark(std::string_view& text, std::string_view mark) {
  if (!text.starts_with(mark)) return false;
  text.remove_prefix(mark.size());
  return true;
}

}  // namespace

ChannelAnswer::ChannelAnswer(MarkTokens& tokens, bool parse_calls, AnswerSink& sink)
    : start_(tokens.tagged(kStart)),
      channel_(tokens.tagged("<|channel|>")),
      constrain_(tokens.tagged("<|constrain|>")),
      message_(tokens.tagged("<|message|>")),
      end_(tokens.tagged("<|end|>")),
      call_(tokens.tagged("<|call|>")),
      return_(tokens.tagged("<|return|>")),
      parse_calls_(parse_calls),
      sink_(sink) {}

// The header may have begun in the prompt, and its message, too.
void ChannelAnswer::begin(std::string_view prompt) {
  const std::size_t start = prompt.rfind(kStart);
  if (start == std::string_view::npos) return;
  std::string rest(prompt.substr(start + kStart.size()));
  for (const std::string* mark : {&channel_, &constrain_, &message_, &end_}) {
    const std::string plain = without_tags(*mark);
    for (std::size_t at = 0; (at = rest.find(plain, at)) != std::string::npos; at += mark->size())
      rest.replace(at, plain.size(), *mark);
  }
  append(rest);
}

void ChannelAnswer::append(std::string_view tagged) {
  text_.held += tagged;
  while (!text_.held.empty() && advance()) {
  }
}

bool ChannelAnswer::advance() {
  switch (at_) {
    case At::kBetween:
      return read_between();
    case At::kHeader:
      return read_header();
    case At::kBody:
      return read_body();
  }
  return false;
}

bool ChannelAnswer::read_between() {
  const std::size_t blanks = text_.blanks();
  const Begins start = begins_with(text_.behind_blanks(), start_);
  const Begins channel = begins_with(text_.behind_blanks(), channel_);
  const bool found = start == Begins::kYes || channel == Begins::kYes;
  if (!found && (start == Begins::kPerhaps || channel == Begins::kPerhaps)) return false;
  if (found) text_.held.erase(0, blanks + (start == Begins::kYes ? start_.size() : 0));
  if (!found) sink_.enter(false);
  at_ = found ? At::kHeader : At::kBody;
  return true;
}

bool ChannelAnswer::may_be_header(std::string_view begun) const {
  const std::string_view rest = begun.substr(std::min(begun.find_first_not_of(kAnswerBlanks), begun.size()));
  return begun.size() <= kLongestHeader &&
         (begins_with(rest, channel_) != Begins::kNo || begins_with(rest, kTo) != Begins::kNo);
}

std::optional<ChannelAnswer::Header> ChannelAnswer::parsed(std::string_view header) const {
  Header result;
  for (;;) {
    header.remove_prefix(std::min(header.find_first_not_of(kAnswerBlanks), header.size()));
    if (header.empty()) break;
    if (result.channel.empty() && take_mark(header, channel_)) {
      result.channel = take_word(header);
      if (result.channel.empty()) return std::nullopt;
    } else if (result.recipient.empty() && take_mark(header, kTo)) {
      result.recipient = take_word(header);
      if (result.recipient.empty()) return std::nullopt;
    } else {
      take_mark(header, constrain_);
      const std::string kind = take_word(header);
      if (result.recipient.empty() || (kind != "json" && kind != "code")) return std::nullopt;
    }
  }
  constexpr std::array<std::string_view, 3> kChannels = {"analysis", "commentary", "final"};
  const bool known = std::ranges::find(kChannels, result.channel) != kChannels.end();
  if (!known && (result.recipient.empty() || !result.channel.empty())) return std::nullopt;
  if (!result.recipient.empty() && (!parse_calls_ || result.recipient == kFunctions)) return std::nullopt;
  return result;
}

bool ChannelAnswer::read_header() {
  const FoundMark message = find_mark(text_.held, std::array{&message_});
  const std::string_view header = std::string_view(text_.held).substr(0, message.at);
  if (!may_be_header(header)) {
    begin_body(std::nullopt, {});
    return true;
  }
  if (message.mark == nullptr) return false;
  const std::size_t size = message.at + message_.size();
  begin_body(parsed(header), std::string_view(text_.held).substr(0, size));
  text_.held.erase(0, size);
  return true;
}

// What is no header is content.
void ChannelAnswer::begin_body(const std::optional<Header>& header, std::string_view written) {
  at_ = At::kBody;
  if (!header) {
    if (sink_.reasons()) sink_.enter(false);
    sink_.text(written);
  } else if (header->recipient.empty()) {
    sink_.enter(header->channel == "analysis");
  } else {
    std::string_view name = header->recipient;
    take_mark(name, kFunctions);
    sink_.begin_call(std::string(name));
  }
}

bool ChannelAnswer::read_body() {
  const FoundMark found = find_mark(text_.held, std::array{&end_, &call_, &return_, &start_, &channel_});
  const std::string_view text = std::string_view(text_.held).substr(0, found.at);
  if (sink_.call_is_open())
    sink_.arguments(without_tags(text));
  else
    sink_.text(text);
  const bool begins = found.mark == &start_ || found.mark == &channel_;
  text_.held.erase(0, found.at + (found.mark == nullptr || begins ? 0 : found.mark->size()));
  if (found.mark == nullptr) return false;
  if (sink_.call_is_open()) {
    if (!sink_.has_arguments()) sink_.arguments("{}");
    sink_.end_call();
  }
  at_ = At::kBetween;
  return true;
}

void ChannelAnswer::finish() {
  if (at_ != At::kBody && sink_.reasons()) sink_.enter(false);
  if (sink_.call_is_open()) {
    sink_.arguments(without_tags(text_.held));
    sink_.end_call();
  } else {
    sink_.text(text_.held);
  }
  text_.held.clear();
  sink_.finish();
}

}  // namespace sluice::tokenizer
