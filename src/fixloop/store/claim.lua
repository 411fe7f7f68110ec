-- Claim a ticket, with a lease and a new fence; a repetition with the same token gets the same answer.

local WORKFLOW, HISTORY = KEYS[9], KEYS[10]
local id, owner, token, lease, workflow = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]

local found = redis.call('HMGET', WORKFLOW, 's:' .. id, 't:' .. id, 'n:' .. id, 'version', 'snapshot', 'head')
local text, deaths, version, snapshot, head = found[2], found[3], found[4], found[5], head_of(found[6])
local clock, wall, away = read_clock()

local function answer(status)
  return {status, seconds(wall), seconds(clock), seconds(away)}
end

local state = read_state(found[1])
if not state then return answer('gone') end

local repeated = state.kind == 'c' and state.rest == token and state.owner == owner
if state.kind == 'c' and not repeated and tonumber(redis.call('ZSCORE', LEASES, id) or 0) > clock then
  return answer('busy')
end
if state.kind == 'd' and tonumber(state.rest) > clock then return answer('early') end

local fence = state.fence
if not repeated then
  if state.kind == 'p' then redis.call('ZREM', PENDING, state.rest) end
  if state.kind == 'd' then redis.call('ZREM', DELAYED, id) end
  fence = take(workflow, id, cjson.decode(text), owner, token, clock)
end
redis.call('ZADD', LEASES, clock + lease, id)

local result = answer('ok')
for _, value in ipairs({fence, version, snapshot, head, text, deaths or '0', leant_on(snapshot, HISTORY)}) do
  result[#result + 1] = value
end
return result
