-- The live workflows of a shard whose clocks go on without a worker: all that is left of their tickets is to tell somebody
-- something. Neither held ones, nor any that a work process has to go on with, nor damaged ones.
-- ARGV: what stands before a workflow's id in its key; the steps that tell; those that do not count.
-- Returns the engine's clock, and for each the workflow, its earliest deadline (or ''), and whether something can be told
-- at once (1 or 0).

local prefix, telling, beside = ARGV[1], cjson.decode(ARGV[2]), cjson.decode(ARGV[3])
local clock = read_clock()

-- Its tickets that tell, and whether it has others.
local function told_by(hash, name, value)
  local is_ticket, ticket = pcall(cjson.decode, value)
  local step = is_ticket and type(ticket) == 'table' and ticket.step
  if not telling[step] then return nil, not beside[step] end
  return read_state(hash['s:' .. string.sub(name, 3)]), false
end

local function standing(hash)
  local due, tells, ready = nil, false, false
  if not hash.version or hash.parked then return nil end
  for name, value in pairs(hash) do
    local kind = string.sub(name, 1, 2)
    if kind == 'd:' and tonumber(value) then due = math.min(due or math.huge, tonumber(value)) end
    if kind == 't:' then
      local state, is_work = told_by(hash, name, value)
      if is_work then return nil end
      tells, ready = tells or state ~= nil, ready or (state ~= nil and state.kind == 'p')
    end
  end
  return (due or tells) and {due and seconds(due) or '', ready and 1 or 0}
end

local found = {}
local live = redis.call('HGETALL', LIVE)
for i = 1, #live, 2 do
  local workflow = live[i] .. '-' .. live[i + 1]
  local stands = standing(as_table(redis.pcall('HGETALL', prefix .. workflow)))
  if stands then found[#found + 1] = {workflow, stands[1], stands[2]} end
end
return {seconds(clock), found}
