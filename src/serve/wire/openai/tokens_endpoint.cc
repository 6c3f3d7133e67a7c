#include <string>
#include <vector>

#include "serve/json/json_writer.h"
#include "serve/json/utf8.h"
#include "serve/wire/endpoints.h"
#include "serve/wire/openai/chat_body.h"
#include "serve/wire/sampling_json.h"
#include "serve/wire/token_fields.h"

namespace sluice::serve {
namespace {

using Ids = std::vector<tokenizer::TokenId>;

void write_ids(JsonWriter& out, const Ids& ids) {
  out.begin_array();
  for (const tokenizer::TokenId id : ids) out.integer(id);
  out.end_array();
}

// A string, or a list of bytes where the token is no text by itself.
void write_piece(JsonWriter& out, const std::string& bytes) {
  if (invalid_utf8(bytes) == bytes.npos) {
    out.string(bytes);
    return;
  }
  out.begin_array();
  for (const char byte : bytes) out.natural(static_cast<unsigned char>(byte));
  out.end_array();
}

void write_pieces(JsonWriter& out, const Ids& ids, const Served& served) {
  out.begin_array();
  for (const tokenizer::TokenId id : ids) {
    out.begin_object().member("id", id).key("piece");
    write_piece(out, served.bytes_of(id));
    out.end_object();
  }
  out.end_array();
}

PreparedPrompt prepared(const Call& call, const Served& served) {
  const BodyValue body = read_body(call);
  return prepare_prompt(read_chat(Fields(body, {})).chat, served, call.service);
}

// llama-server's form, or one of vLLM's two.
Ids ids_asked_for(const Fields& fields, const Call& call, const Served& served) {
  using tokenizer::AddSpecial;
  const auto encode = [&](std::string_view name, bool add) {
    return encode_raw(*fields.string(name), add ? AddSpecial::kYes : AddSpecial::kNo, served, call.service,
                      std::string(name));
  };
  if (fields.has("content")) return encode("content", fields.boolean("add_special").value_or(false));
  if (fields.has("prompt")) return encode("prompt", fields.boolean("add_special_tokens").value_or(true));
  if (fields.has("messages")) return prepare_prompt(read_chat(fields).chat, served, call.service).ids;
  throw missing_field("content");
}

void write_caps(JsonWriter& out, const tokenizer::ChatCaps& caps) {
  out.begin_object()
      .member("system", caps.system)
      .member("developer", caps.developer)
      .member("tools", caps.tools);
  out.member("calls", caps.calls).member("argument_object", caps.argument_object);
  out.member("two_calls", caps.two_calls).member("parts", caps.parts);
  out.member("thinking_switch", caps.thinking_switch).member("alternates", caps.alternates);
  out.member("opens_thinking", caps.opens_thinking).end_object();
}

void write_template(JsonWriter& out, const Served& served) {
  out.key("chat_template");
  if (served.chat == nullptr) {
    out.null();
  } else {
    out.string(served.chat->source(false));
  }
}

}  // namespace

void answer_tokenize(const Call& call) {
  const std::shared_ptr<const Served> served = need_loaded(call.service);
  const BodyValue body = read_body(call);
  const Fields fields(body, {});
  const bool pieces = fields.boolean("with_pieces").value_or(false);
  const bool strings = fields.boolean("return_token_strs").value_or(false);
  const Ids ids = ids_asked_for(fields, call, *served);
  JsonWriter out;
  out.begin_object().key("tokens");
  if (pieces) {
    write_pieces(out, ids, *served);
  } else {
    write_ids(out, ids);
  }
  out.member("count", ids.size()).member("max_model_len", served->context);
  if (strings) {
    out.key("token_strs").begin_array();
    for (const tokenizer::TokenId id : ids) out.string(served->bytes_of(id));
    out.end_array();
  }
  call.send_json(out.end_object().take());
}

void answer_detokenize(const Call& call) {
  const std::shared_ptr<const Served> served = need_loaded(call.service);
  const BodyValue body = read_body(call);
  const Fields fields(body, {});
  const BodyValue& tokens = fields.need("tokens");
  if (!tokens.is_array()) fields.wrong_type("tokens", "an array of token ids");
  const tokenizer::Tokenizer& tokenizer = need_tokenizer(*served);
  const Ids ids = read_token_ids(tokens, "tokens", *served);
  const std::string text = tokenizer.decode(ids, tokenizer::ShowSpecial::kYes);
  JsonWriter out;
  call.send_json(out.begin_object().member("content", text).member("prompt", text).end_object().take());
}

void answer_apply_template(const Call& call) {
  const std::shared_ptr<const Served> served = need_loaded(call.service);
  JsonWriter out;
  out.begin_object().member("prompt", prepared(call, *served).text).end_object();
  call.send_json(out.take());
}

void answer_input_tokens(const Call& call) {
  const std::shared_ptr<const Served> served = need_loaded(call.service);
  JsonWriter out;
  out.begin_object().member("object", "response.input_tokens");
  out.member("input_tokens", prepared(call, *served).ids.size()).end_object();
  call.send_json(out.take());
}

void answer_tokenizer_info(const Call& call) {
  const std::shared_ptr<const Served> served = need_loaded(call.service);
  need_tokenizer(*served);
  JsonWriter out;
  out.begin_object()
      .member("tokenizer_class", served->tokenizer_class)
      .member("bos_token", served->bos_token);
  out.member("eos_token", served->eos_token).member("pad_token", served->pad_token);
  write_template(out, *served);
  call.send_json(out.end_object().take());
}

void answer_props(const Call& call) {
  const std::shared_ptr<const Served> served = need_loaded(call.service);
  JsonWriter out;
  out.begin_object().key("default_generation_settings").begin_object().member("n_ctx", served->context);
  out.key("params");
  write_sampling(out, served->defaults.sampling, std::nullopt);
  out.end_object().member("total_slots", served->parallel);
  out.member("model_alias", call.service.backend.card().id);
  write_template(out, *served);
  out.key("chat_template_caps");
  if (served->chat == nullptr) {
    out.null();
  } else {
    write_caps(out, served->chat->caps(false));
  }
  out.key("modalities").begin_object().member("vision", false).member("audio", false).end_object();
  out.member("bos_token", served->bos_token).member("eos_token", served->eos_token);
  out.member("build_info", "sluice-" + call.service.options.version).end_object();
  call.send_json(out.take());
}

}  // namespace sluice::serve
