-- End a ticket's delay; a held ticket stays delayed until its workflow continues.

local WORKFLOW = KEYS[9]
local id = ARGV[1]

local found = redis.call('HMGET', WORKFLOW, 's:' .. id, 't:' .. id)
local state = read_state(found[1])
if not state or state.kind ~= 'd' or state.rest == FOR_EVER then return '' end

redis.call('ZREM', DELAYED, id)
local member = offer(cjson.decode(found[2]), (read_clock()), FIRST)
redis.call('HSET', WORKFLOW, 's:' .. id, state_text('p', state.fence, state.owner, state.limit, member))
return found[2]
