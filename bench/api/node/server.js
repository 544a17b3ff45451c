// The service of examples/api on fastify and pg, as their users write it: schemas check what comes and
// write what goes, each statement is prepared once a connection, and a pool has 4 connections.
//
// Environment: DATABASE_URL, SESSION_KEY (signs sessions), ACCESS_LOG (a file). The port is any free
// one of 127.0.0.1, and stdout says which.
'use strict'

const fastify = require('fastify')
const pg = require('pg')
const pino = require('pino')

const SESSION_MS = 24 * 3600 * 1000
const BEFORE_ALL = Number.MAX_SAFE_INTEGER
const TITLES = { 401: 'Unauthorized', 404: 'Not Found', 422: 'Unprocessable Content' }
const COLUMNS = 'id, title, body, state, priority, author, created'
const SQL = {
  get: `SELECT ${COLUMNS} FROM issue WHERE id = $1`,
  list: `SELECT ${COLUMNS} FROM issue WHERE id < $1 ORDER BY id DESC LIMIT $2`,
  insert: `INSERT INTO issue (title, body, priority, author, created)
           VALUES ($1, $2, $3, $4, $5) RETURNING ${COLUMNS}`
}

pg.types.setTypeParser(pg.types.builtins.INT8, Number)
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 4 })
const query = async (name, ...values) => (await pool.query({ name, text: SQL[name], values })).rows

// --- schemas -----------------------------------------------------------------------------------------

const text = { type: 'string' }
const integer = { type: 'integer' }
const issue = {
  type: 'object',
  properties: {
    id: integer, title: text, body: text, state: text, priority: integer, author: text, created: integer
  }
}
const page = {
  type: 'object',
  properties: { items: { type: 'array', items: issue }, next: { type: 'integer', nullable: true } }
}
const byId = { type: 'object', properties: { id: { type: 'integer', minimum: 1 } } }
const byPage = {
  type: 'object',
  properties: {
    limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
    before: { type: 'integer', minimum: 1, default: BEFORE_ALL }
  }
}
const newIssue = {
  type: 'object',
  required: ['title', 'body', 'priority'],
  properties: {
    title: { type: 'string', minLength: 1, maxLength: 200 },
    body: { type: 'string', maxLength: 10000 },
    priority: { type: 'integer', minimum: 1, maximum: 5 }
  }
}
const login = {
  type: 'object',
  required: ['name'],
  properties: { name: { type: 'string', pattern: '^[a-z]{1,32}$' } }
}

// --- the service -------------------------------------------------------------------------------------

// The log has one line a request, not two as by default, and is written by the buffer, as the others' is.
class OneLine extends fastify.LogController {
  incomingRequest () {}
  requestCompleted (error, request, reply) {
    request.log.info({ req: request, res: reply, err: error, responseTime: reply.elapsedTime }, 'request completed')
  }
}
const log = pino(pino.destination({ dest: process.env.ACCESS_LOG, sync: false, minLength: 4096 }))
const app = fastify({ loggerInstance: log, logController: new OneLine() })

app.register(require('@fastify/cookie'), { secret: process.env.SESSION_KEY })
app.addHook('onRequest', async (request, reply) => { reply.header('x-request-id', request.id) })

function problem (reply, status, more) {
  return reply.code(status).type('application/problem+json')
    .send(JSON.stringify({ type: 'about:blank', title: TITLES[status] || 'Error', status, ...more }))
}

app.setNotFoundHandler((request, reply) => problem(reply, 404))
app.setErrorHandler((error, request, reply) => {
  if (error.validation) {
    const { instancePath, params, message } = error.validation[0]
    const path = instancePath || '/' + params.missingProperty
    return problem(reply, 422, { errors: [{ path, detail: message }] })
  }
  request.log.error(error)
  return problem(reply, error.statusCode || 500)
})

// The name in a session that was signed here and has not expired, else null.
function userOf (request) {
  const signed = request.cookies.session && request.unsignCookie(request.cookies.session)
  if (!signed || !signed.valid) return null
  const [name, expiry] = signed.value.split('.')
  return Number(expiry) > Date.now() ? name : null
}

async function requireUser (request, reply) {
  request.user = userOf(request)
  if (!request.user) return problem(reply, 401)
}

app.post('/login', { schema: { body: login } }, async (request, reply) => {
  reply.setCookie('session', `${request.body.name}.${Date.now() + SESSION_MS}`,
    { signed: true, httpOnly: true, sameSite: 'lax', path: '/' })
  reply.code(204)
})

app.get('/issues/:id', { schema: { params: byId, response: { 200: issue } } }, async (request, reply) => {
  const [found] = await query('get', request.params.id)
  return found || problem(reply, 404)
})

app.get('/issues', { schema: { querystring: byPage, response: { 200: page } } }, async (request) => {
  const { limit, before } = request.query
  const items = await query('list', before, limit)
  return { items, next: items.length === limit ? items[limit - 1].id : null }
})

app.post('/issues', { onRequest: requireUser, schema: { body: newIssue, response: { 201: issue } } },
  async (request, reply) => {
    const { title, body, priority } = request.body
    const [added] = await query('insert', title, body, priority, request.user, Date.now())
    reply.code(201).header('location', `/issues/${added.id}`)
    return added
  })

process.once('SIGTERM', async () => {
  await app.close()
  await pool.end()
})

app.listen({ host: '127.0.0.1', port: 0 })
  .then(() => console.log(`listening 127.0.0.1:${app.server.address().port}`))
