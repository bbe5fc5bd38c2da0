package tiny

import (
	"fmt"

	"codea1/gpuworker"
	"codea1/gpuworker/tiny/tokenizer"
)

// chatTemplate is ChatML, the chat format of Qwen2, as a template for Hugging
// Face's transformers. chat.encode does the same in Go.
const chatTemplate = `{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`

// chat renders messages as tokens.
type chat struct {
	tokenizer                     *tokenizer.Tokenizer
	turnStart, turnEnd, endOfText int32
}

func newChat(t *tokenizer.Tokenizer) (chat, error) {
	c := chat{tokenizer: t}
	for token, id := range map[string]*int32{
		tokenizer.TurnStart: &c.turnStart, tokenizer.TurnEnd: &c.turnEnd, tokenizer.EndOfText: &c.endOfText,
	} {
		var ok bool
		if *id, ok = t.ID(token); !ok {
			return chat{}, fmt.Errorf("tokenizer.json has no %s", token)
		}
	}
	return c, nil
}

// encode renders messages and the header of the assistant's turn. A last message of the
// assistant is the begin of that turn. Content never becomes a special token.
func (c chat) encode(messages []gpuworker.Message) ([]int32, error) {
	var ids []int32
	begun := ""
	if n := len(messages); n > 0 && messages[n-1].Role == "assistant" {
		messages, begun = messages[:n-1], messages[n-1].Content
	}
	for i, m := range messages {
		switch m.Role {
		case "system", "user", "assistant":
		default:
			return nil, fmt.Errorf("%w: message %d has the role %q", ErrBadRequest, i, m.Role)
		}
		ids = append(ids, c.turnStart)
		ids = c.tokenizer.Append(ids, m.Role+"\n"+m.Content)
		ids = append(ids, c.turnEnd)
		ids = c.tokenizer.Append(ids, "\n")
	}
	ids = append(ids, c.turnStart)
	return c.tokenizer.Append(ids, "assistant\n"+begun), nil
}

// ends reports whether a completion ends with a token.
func (c chat) ends(id int32) bool { return id == c.turnEnd || id == c.endOfText }

// EncodePrompt implements gpuworker.Sampler.
func (e *Engine) EncodePrompt(messages []gpuworker.Message) ([]int32, error) {
	return e.chat.encode(messages)
}

// EncodeResponse returns the tokens of an assistant's turn after its header,
// with the end token.
func (e *Engine) EncodeResponse(text string) []int32 {
	return append(e.tokenizer.Encode(text), e.chat.turnEnd)
}
