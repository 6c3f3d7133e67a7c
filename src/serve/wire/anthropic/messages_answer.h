// Answers of Anthropic's API: events of a stream, or one object.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "serve/wire/answer_format.h"
#include "serve/wire/openai/chat_answer.h"
#include "serve/wire/whole_answer.h"

namespace sluice::serve {

class MessagesAnswer final : public AnswerFormat {
 public:
  // `prompt`: its tokens, which the first event tells before any is computed.
  MessagesAnswer(AnswerHead head, bool stream, std::string request_id, std::size_t prompt);

  bool streams() const override { return stream_; }
  void begin(const Waiting& waiting, std::string& out) override;
  void give(const AnswerEvent& event, std::string& out) override;
  void ping(const Waiting& waiting, std::string& out) override;
  void fail(const ApiError& error, std::string& out) override;
  void end(std::string& out) override;
  std::string whole() override;

 private:
  enum class Block { kNone, kThinking, kText, kTool };

  void start_message(std::size_t cached, std::string& out);
  void open(Block block, std::string_view content_block, std::string& out);
  void close(std::string& out);
  void delta(std::string_view delta_json, std::string& out);
  void stream(const AnswerEvent& event, std::string& out);

  const AnswerHead head_;
  const bool stream_;
  const std::string request_id_;
  const std::size_t prompt_;
  bool started_ = false;
  Block block_ = Block::kNone;
  std::size_t index_ = 0;  // the index of the open block, or of the next one
  WholeAnswer answer_;
};

}  // namespace sluice::serve
